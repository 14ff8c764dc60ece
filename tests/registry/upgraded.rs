//! What an upgraded registry contains, and what it does not assign.

use cluster::{Answer as _, Builder, Cluster, assert_caught};

use crate::calls::{LAYOUT, check_quarantine, claim, hello};
use crate::install::{OBJECTS, run, script};

/// The state before the upgrade.
pub const BEFORE: &str = include_str!("snowflake_registry--0.2.0-dev.sql");

pub fn upgrade_script() -> String {
    script(&format!("0.2.0-dev--{}", env!("CARGO_PKG_VERSION")))
}

/// Returns a server with a registry of the version before.
pub fn before(builder: Builder, layout: &str) -> Cluster {
    let server = builder.unset("shared_preload_libraries").start();
    run(&server, "postgres", BEFORE).expect("the script runs");
    server.connect().one::<String>(&format!("SELECT snowflake_registry.create_fleet('{layout}')::text"));
    server
}

#[test]
fn the_upgrade_leaves_what_a_new_registry_has() {
    let server = before(Cluster::builder("registry_upgraded"), LAYOUT);
    server.connect().batch_execute("CREATE DATABASE fresh").expect("a superuser may");
    server.connect_to("fresh").batch_execute("CREATE EXTENSION snowflake_registry").expect("it is installed");
    let mut client = server.connect();
    let role = "CREATE ROLE fleet; SELECT snowflake_registry.grant_server('fleet')";
    client.batch_execute(role).expect("a superuser may");
    run(&server, "postgres", &upgrade_script()).expect("the upgrade runs");
    let kept = "SELECT count(*) FROM pg_proc p WHERE pronamespace = 'snowflake_registry'::regnamespace
        AND has_function_privilege('fleet', p.oid, 'EXECUTE')";
    assert_eq!(client.one::<i64>(kept), 7);
    client.batch_execute("DROP OWNED BY fleet").expect("a superuser may");
    let objects = |database: &str| server.connect_to(database).all::<String>(OBJECTS);
    assert_eq!(objects("postgres"), objects("fresh"));
    let again = run(&server, "postgres", &upgrade_script()).expect_err("there is nothing to do");
    assert!(again.contains("the registry has already been upgraded"), "{again}");
}

/// What the version before does when it runs on the next timeline without the claim of worker ID 6. A test cannot change the server's
/// timeline, so it changes the record.
const LOST: &str = "DELETE FROM snowflake_registry.node WHERE worker_id = 6;
    UPDATE snowflake_registry.ring SET next_worker = 6;
    UPDATE snowflake_registry.fleet SET timeline = timeline - 1";

/// Upgrades a registry after a failover that lost the claim of a worker ID. This worker ID was in the ring, and is a common spare one
/// after the upgrade. The registry has `noticed` the failover if a server has called it in between. Checks that nobody else gets the
/// worker ID.
fn check_lost_claim(name: &str, noticed: bool, script: &str) -> Result<(), String> {
    const SMALL: &str = "41:3:12";
    let server = before(Cluster::builder(name), SMALL);
    let mut client = server.connect();
    let claimed: Vec<u32> = (0..7).map(|_| claim(&mut client, SMALL).expect("a worker ID")).collect();
    assert_eq!(claimed, [0, 1, 2, 3, 4, 5, 6]);
    client.batch_execute(LOST).expect("a superuser may");
    if noticed {
        client.batch_execute(&hello(SMALL)).expect("the registry answers");
    }
    run(&server, "postgres", script).expect("the upgrade runs");
    check_quarantine(&mut client, SMALL)
}

#[test]
fn an_upgraded_registry_assigns_no_worker_id_whose_claim_was_lost() {
    for (name, noticed) in [("registry_upgrade_noticed", true), ("registry_upgrade_unnoticed", false)] {
        check_lost_claim(name, noticed, &upgrade_script()).unwrap_or_else(|reason| panic!("{name}: {reason}"));
    }
}

#[test]
fn an_upgrade_that_leaves_the_spare_worker_ids_open_is_caught() {
    let script = upgrade_script();
    let closed = "UPDATE snowflake_registry.fleet SET spare_closed = true;";
    let open = script.replace(closed, "");
    assert_ne!(open, script);
    assert_caught(check_lost_claim("registry_upgrade_open", true, &open), "worker ID 6 was assigned");
}

#[test]
fn an_upgrade_that_does_not_notice_a_failover_is_caught() {
    let script = upgrade_script();
    let notice = "f := snowflake_registry.begin_life(f, i, NULL, now_at);";
    let (functions, end) = script.rsplit_once(notice).expect("the upgrade begins a life");
    let blind = format!("{functions}NULL;{end}");
    assert_caught(check_lost_claim("registry_upgrade_blind", false, &blind), "worker ID 6 was assigned");
}
