//! No role starves another: a session that requests one ID gets it at once, beside sessions that take all the IDs they can get in
//! bulk.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use cluster::{Answer, Builder, Cluster, assert_caught, assert_caught_by_chance, ensure, within};
use postgres::NoTls;

/// How often a session that requests one ID now and then was throttled beside five sessions that run `attack` repeatedly, as a
/// role without privileges.
fn throttled_beside(name: &str, layout: &str, attack: &'static str) -> Result<i64, String> {
    let (server, mut victim) = Cluster::builder(name).set("snowflake_pg.layout", layout).start_session();
    victim.run("CREATE ROLE attacker");
    let ended = Arc::new(AtomicBool::new(false));
    let attackers: Vec<_> = (0..5)
        .map(|_| {
            let (mut session, ended) = (server.connect(), ended.clone());
            session.run("SET ROLE attacker");
            thread::spawn(move || {
                while !ended.load(Ordering::Relaxed) {
                    session.run(attack);
                }
            })
        })
        .collect();
    let mut watcher = server.connect();
    let busy = within(Duration::from_secs(30), || {
        watcher.one("SELECT count(*) >= 5 FROM snowflake_stat_backends WHERE throttled_waits > 3")
    });
    for _ in 0..300 {
        victim.one::<i64>("SELECT snowflake_nextval()");
        thread::sleep(Duration::from_millis(5));
    }
    let waits = victim.one("SELECT throttled_waits FROM snowflake_stat_backends WHERE pid = pg_backend_pid()");
    ended.store(true, Ordering::Relaxed);
    attackers.into_iter().for_each(|attacker| attacker.join().expect("an attacker ends"));
    ensure!(busy, "the attackers do not reach the limit");
    Ok(waits)
}

#[test]
fn blocks_and_batches_throttle_no_single_id() {
    let draw = "SELECT count(*) FROM snowflake_nextval_batch(300000)";
    for (name, layout, attack) in [
        ("starvation_blocks", "41:10:12", "SELECT snowflake_reserve(4096)"),
        ("starvation_long_blocks", "31:10:22@1s", "SELECT snowflake_reserve(200000)"),
        ("starvation_batches", "41:10:12", draw),
        ("starvation_long_batches", "31:10:20@1s", draw),
    ] {
        assert_eq!(throttled_beside(name, layout, attack), Ok(0), "{attack} in {layout}");
    }
}

/// Blocks that a session gets within the timeout, beside others that take single IDs without a pause.
fn check_blocks_beside_singles(builder: Builder) -> Result<(), String> {
    const BLOCKS: usize = 10;
    // 64 IDs to a tick are fewer than one session can draw.
    let (server, mut victim) = builder.set("snowflake_pg.layout", "41:10:6").start_session();
    let attackers: Vec<_> = (0..3)
        .map(|_| {
            let mut session = server.connect();
            let cancel = session.cancel_token();
            let draw = "SELECT count(snowflake_nextval()) FROM generate_series(1, 1000000) AS a, generate_series(1, 1000) AS b";
            (thread::spawn(move || session.batch_execute(draw)), cancel)
        })
        .collect();
    let mut watcher = server.connect();
    let busy = within(Duration::from_secs(30), || {
        watcher.one("SELECT count(*) >= 3 FROM snowflake_stat_backends WHERE throttled_waits > 20")
    });
    victim.run("SET statement_timeout = '5s'");
    let granted = (0..BLOCKS).take_while(|_| victim.code("SELECT snowflake_reserve(32)").is_none()).count();
    for (attacker, cancel) in attackers {
        cancel.cancel_query(NoTls).expect("the server answers");
        attacker.join().expect("an attacker ends").expect_err("it would draw for hours");
    }
    ensure!(busy, "the attackers do not reach the limit");
    ensure!(granted == BLOCKS, "{granted} of {BLOCKS} blocks in 5 s each");
    Ok(())
}

#[test]
fn single_ids_without_a_pause_keep_no_block_waiting_for_ever() {
    check_blocks_beside_singles(Cluster::builder("starvation_singles")).unwrap();
}

#[test]
fn a_block_that_waits_for_ever_is_caught() {
    let check = || check_blocks_beside_singles(Cluster::builder("starvation_never").fault("NeverOverdue"));
    assert_caught_by_chance(check, "blocks in 5 s each");
}

#[test]
fn a_limit_that_all_requests_share_is_caught() {
    // The control of the tests above: single IDs drawn without a pause take all that single IDs are allowed.
    let draw = "SELECT count(snowflake_nextval()) FROM generate_series(1, 20000)";
    let waits = throttled_beside("starvation_shared", "41:10:6", draw);
    assert!(waits.as_ref().is_ok_and(|waits| *waits > 0), "{waits:?}");
}

/// How many IDs a session draws in the first half of the run-ahead, apart from the one for which it has waited. A second has 16 IDs, and
/// the IDs of two seconds are available at first.
const TAKEN: &str = "SELECT count(*) FILTER (WHERE place > 1 AND lead > interval '0.5 s')
    FROM (SELECT row_number() OVER (PARTITION BY at ORDER BY id) AS place, row_number() OVER (ORDER BY id) AS number, lead
          FROM (SELECT id, snowflake_timestamp(id) AS at, snowflake_timestamp(id) - clock_timestamp() AS lead
                FROM (SELECT snowflake_nextval() AS id FROM generate_series(1, 64) OFFSET 0) AS ids OFFSET 0) AS seen) AS places
    WHERE number > 33";

/// A session that has waited leaves the first IDs of a tick to other sessions that wait.
fn check_turns(builder: Builder) -> Result<(), String> {
    let server = builder.set("snowflake_pg.layout", "31:28:4@1s").set("snowflake_pg.max_ahead", "1s").start();
    let taken: i64 = server.session().one(TAKEN);
    ensure!(taken == 0, "took {taken} IDs before others could");
    Ok(())
}

#[test]
fn a_session_that_has_waited_leaves_the_first_ids_of_a_tick_to_others() {
    check_turns(Cluster::builder("starvation_turns")).unwrap();
}

#[test]
fn a_session_that_takes_all_ids_of_a_tick_is_caught() {
    assert_caught(check_turns(Cluster::builder("starvation_greedy").fault("GreedySessions")), "before others could");
}
