//! Many servers at once, and servers that leave locks behind.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use cluster::{Answer as _, Client, Cluster, SOON, assert_caught, assert_caught_by_chance, ensure, sqlstate, within};

use crate::calls::{LAYOUT, claim, hello, registry, spoil};

/// Several sessions notice the same failover at the same time.
#[test]
fn a_discontinuity_begins_one_life_whoever_notices_it() {
    let server = registry("registry_noticed", LAYOUT);
    let mut client = server.connect();
    claim(&mut client, LAYOUT).expect("a number");
    for life in 2..6 {
        let sql = "UPDATE snowflake_registry.fleet SET timeline = timeline - 1; SELECT snowflake_registry.mark_fleet()";
        client.batch_execute(sql).expect("a superuser may");
        let sessions: Vec<_> = (0..20).map(|_| server.connect()).collect();
        let claims: Vec<_> =
            sessions.into_iter().map(|mut client| thread::spawn(move || claim(&mut client, LAYOUT))).collect();
        let outcomes: BTreeSet<String> =
            claims.into_iter().map(|claim| format!("{:?}", claim.join().expect("the thread ends"))).collect();
        assert_eq!(client.one::<i64>("SELECT life FROM snowflake_registry.fleet"), life, "{outcomes:?}");
    }
}

/// Returns the statement with which a new server claims a worker ID.
fn claim_of(client: &mut Client) -> String {
    let row = client.query_one(&hello(LAYOUT), &[]).expect("hello takes no lock and writes nothing");
    let (fleet, nonce, life): (String, String, String) = (row.get("fleet"), row.get("nonce"), row.get("life"));
    format!(
        "SELECT answer FROM snowflake_registry.claim('{fleet}', '{LAYOUT}', 1288834974657, 0, '{nonce}', {life}, '{nonce}',
             9000000000000000000, '12 h', NULL)"
    )
}

fn idle_in_transaction(server: &Cluster) -> Client {
    let mut client = server.connect();
    client.batch_execute("BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0").expect("a session may");
    claim(&mut client, LAYOUT).expect("a number");
    client
}

#[test]
fn a_lock_that_is_left_in_a_transaction_is_an_error_in_bounded_time_and_ends() {
    let server = registry("registry_left", LAYOUT);
    let mut left = idle_in_transaction(&server);
    let mut client = server.connect();
    let claim_sql = claim_of(&mut client);
    let begun = Instant::now();
    let error = client.batch_execute(&claim_sql).expect_err("the lock is held");
    assert_eq!(sqlstate(&error).0, "55P03");
    assert!(begun.elapsed() < Duration::from_secs(20), "the error came after {:?}", begun.elapsed());
    // The session that left the lock is ended, and the others go on.
    assert!(within(Duration::from_secs(60), || client.batch_execute(&claim_sql).is_ok()), "{}", server.log());
    assert!(left.simple_query("SELECT 1").is_err(), "the session goes on");
    // A session that waits can be cancelled.
    let _left = idle_in_transaction(&server);
    let other = claim_of(&mut client);
    client.batch_execute("SET statement_timeout = '300ms'").expect("a session may");
    let begun = Instant::now();
    let error = client.batch_execute(&other).expect_err("the lock is held");
    assert_eq!(sqlstate(&error).0, "57014");
    assert!(begun.elapsed() < Duration::from_secs(5));
}

/// Sessions lock the row of the fleet FOR SHARE, as renewals do, so that there is always one that has locked it. Whether a claim, which
/// needs the row for itself, gets its turn.
fn check_turn(name: &str, prepare: impl Fn(&mut Client)) -> Result<(), String> {
    let server = registry(name, LAYOUT);
    let mut client = server.connect();
    prepare(&mut client);
    let claim_sql = claim_of(&mut client);
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        // Their times differ, so that they do not unlock the row together again and again.
        for time in (80..160).step_by(10) {
            let (server, ended) = (&server, &ended);
            scope.spawn(move || {
                let mut sharer = server.connect();
                let share = format!(
                    "BEGIN; SELECT FROM snowflake_registry.fleet FOR SHARE; SELECT pg_sleep({time} / 1000.0); COMMIT"
                );
                while !ended.load(Ordering::Relaxed) {
                    sharer.run(&share);
                }
            });
        }
        let sharers = "SELECT count(*) FROM pg_locks WHERE relation = 'snowflake_registry.fleet'::regclass AND mode = 'RowShareLock'";
        assert!(within(SOON, || client.one::<i64>(sharers) >= 6));
        client.run("SET statement_timeout = '4s'");
        let claimed = client.batch_execute(&claim_sql);
        ended.store(true, Ordering::Relaxed);
        claimed.map_err(|error| format!("the claim fails with {}", sqlstate(&error).0))
    })
}

#[test]
fn a_claim_gets_its_turn_among_renewals() {
    check_turn("registry_turn", |_| {}).unwrap();
}

#[test]
fn a_claim_that_does_not_queue_is_caught() {
    let spoiled = |client: &mut Client| spoil(client, "queue_for_fleet", "IN EXCLUSIVE MODE", "IN ACCESS SHARE MODE");
    assert_caught_by_chance(|| check_turn("registry_no_turn", spoiled), "the claim fails with 57014");
}

#[test]
fn a_registry_that_cannot_write_grants_nothing() {
    let server = registry("registry_read_only", LAYOUT);
    let mut client = server.connect();
    assert_eq!(claim(&mut client, LAYOUT), Ok(0));
    let before: String = client.one("SELECT string_agg(n::text, ' ') FROM snowflake_registry.node n");
    client.batch_execute("SET default_transaction_read_only = on").expect("a session may");
    let claim_sql = claim_of(&mut client);
    let refused = client.code(&claim_sql);
    assert_eq!(refused.as_deref(), Some("25006"));
    let standby = server.standby(Cluster::builder("registry_standby").unset("shared_preload_libraries"));
    let (code, message) = standby.connect().refusal(&hello(LAYOUT));
    assert_eq!((code.as_str(), message.as_str()), ("25006", "the registry is on a standby"));
    assert_eq!(client.one::<String>("SELECT string_agg(n::text, ' ') FROM snowflake_registry.node n"), before);
}

/// Runs statements that keep the registry locked in a session of a role of the servers. Whether a claim succeeds as soon as they have
/// kept the lock for longer than a request takes.
fn check_overdue(name: &str, prepare: &str, hold: &'static str) -> Result<(), String> {
    let server = registry(name, LAYOUT);
    let mut owner = server.connect();
    let role = "CREATE ROLE fleet LOGIN; SELECT snowflake_registry.grant_server('fleet')";
    owner.batch_execute(&format!("{role}; {prepare}")).expect("a superuser may");
    let mut holder = server.connect_as("fleet");
    claim(&mut holder, LAYOUT).expect("a number");
    let process: i32 = holder.one("SELECT pg_backend_pid()");
    let call = claim_of(&mut holder);
    let held = thread::spawn(move || {
        let ended = holder.batch_execute(&hold.replace("$claim", &call)).is_err();
        (holder, ended)
    });
    let old = format!(
        "SELECT bool_or(xact_start < clock_timestamp() - interval '12 s') FROM pg_stat_activity WHERE pid = {process}"
    );
    ensure!(within(Duration::from_secs(60), || owner.one::<Option<bool>>(&old) == Some(true)), "nothing was held");
    let mut client = server.connect_as("fleet");
    let call = claim_of(&mut client);
    let claimed = (0..3).any(|_| client.batch_execute(&call).is_ok());
    owner.batch_execute(&format!("SELECT pg_terminate_backend({process})")).expect("a superuser may");
    held.join().expect("the thread ends");
    ensure!(claimed, "the registry stays locked");
    ensure!(server.log().contains("because it keeps the registry locked"), "nothing is logged:\n{}", server.log());
    Ok(())
}

const IDLE: &str = "BEGIN; $claim; SET LOCAL idle_in_transaction_session_timeout = 0";
const BUSY: &str = "SELECT pg_sleep(600) FROM ($claim OFFSET 0) AS claimed";

#[test]
fn a_role_that_keeps_the_lock_in_an_idle_transaction_is_ended() {
    check_overdue("registry_overdue", "", IDLE).unwrap();
}

#[test]
fn a_role_that_keeps_the_lock_in_a_statement_is_ended() {
    check_overdue("registry_overdue_busy", "", BUSY).unwrap();
}

#[test]
fn a_registry_that_ends_no_session_is_caught() {
    let never =
        "CREATE OR REPLACE FUNCTION snowflake_registry.end_sessions(sessions text[]) RETURNS void LANGUAGE sql AS ''";
    assert_caught(check_overdue("registry_overdue_kept", never, IDLE), "the registry stays locked");
}
