//! A registry that is restored from a base backup, and has forgotten blocks that servers hold.

use cluster::{Answer, Client, Cluster, Host, Stop, assert_caught, ensure, within};

use crate::servers::{SOON, check_ledger, draw, next_value, registry, server, string, wait_for_log};

/// A server draws before and after a backup of its registry. Returns the restored registry, the server, its session, the numbers that it
/// has drawn, and the next number of the lost registry.
fn restored(name: &str) -> (Cluster, Cluster, Client, Vec<Vec<i64>>, i64) {
    let mut first = registry(&format!("{name}_a"), 100);
    let (known, mut client) = server(&format!("{name}_1"), &first).start_session();
    let mut ledger = vec![draw(&mut client, 10)];
    let plain = Cluster::builder(&format!("{name}_b")).unset("shared_preload_libraries");
    let mut second = first.backup(plain.set("restore_command", "false"));
    ledger.push(draw(&mut client, 1_000));
    let forgotten = next_value(&first, "orders");
    first.stop(Stop::Immediate);
    Host::get().write(&second.dir().join("recovery.signal"), "");
    second.start();
    let ended = || !second.connect().one::<bool>("SELECT pg_is_in_recovery()");
    assert!(within(SOON, ended), "not restored:\n{}", second.log());
    (second, known, client, ledger, forgotten)
}

/// The restored registry serves another server, and then the first one again.
fn check(name: &str, change: impl Fn(&Cluster)) -> Result<(), String> {
    let (second, mut known, mut client, mut ledger, forgotten) = restored(name);
    change(&second);
    assert!(next_value(&second, "orders") < forgotten, "nothing is lost");
    let other = server(&format!("{name}_2"), &second).start();
    ledger.push(draw(&mut other.session(), 1_000));
    // The server goes on in the blocks that it holds.
    known.set("snowflake_pg.registry", &string(&second));
    known.reload();
    let reached = "SELECT count(*) = 2 FROM snowflake_registry.servers WHERE seen > pg_postmaster_start_time()";
    assert!(within(SOON, || second.connect().one::<bool>(reached)), "the registry is not reached:\n{}", known.log());
    ledger.push(draw(&mut client, 3_000));
    let highest = check_ledger(&ledger)?;
    ensure!(highest > forgotten, "the segment has skipped nothing");
    Ok(())
}

#[test]
fn a_registry_that_is_restored_gives_out_no_number_again() {
    check("seg_lost", |_| {}).unwrap();
}

/// Takes away the skip that follows if the state of the registry might be older than what the registry has answered.
#[test]
fn a_registry_that_skips_nothing_is_caught() {
    let without_lives = |registry: &Cluster| {
        let sql = "CREATE OR REPLACE FUNCTION snowflake_registry.begin_life(
                       f snowflake_registry.fleet, i snowflake_registry.identity, told bigint, now_at timestamptz, why text DEFAULT NULL
                   ) RETURNS snowflake_registry.fleet LANGUAGE plpgsql AS 'BEGIN RETURN f; END'";
        registry.connect().run(sql);
    };
    assert_caught(check("seg_lost_twice", without_lives), "numbers came twice");
}

/// With its next heartbeat, a server reports its blocks, and the restored registry goes on above them.
#[test]
fn a_server_reports_the_blocks_that_a_restored_registry_has_forgotten() {
    let (second, mut known, mut client, ..) = restored("seg_report");
    known.set("snowflake_pg.registry", &string(&second));
    known.reload();
    wait_for_log(&known, "the registry had forgotten numbers of segment \"orders\"");
    let next: i64 = client.one("SELECT snowflake_segment_nextval('orders')");
    assert_eq!(next, 1_011);
}
