//! No session waits for what a role other than the owner has locked, or for a session whose client does not read.

use std::thread;
use std::time::Duration;

use cluster::{Answer, PATIENCE, UnreadClient, assert_caught, ensure, within};
use postgres::NoTls;

use crate::server::{as_role, install, issuing, owned, plain, script, spoilt};

/// What any role can run to lock the objects of the state, and the SQLSTATE of the error.
const LOCKS: [(&str, &str); 4] = [
    // The planner calls the function before PostgreSQL checks the privilege.
    ("INSERT INTO snowflake_state.snowflake_portable_lock SELECT WHERE pg_temp.nap()", "42501"),
    // The statement waits for the second table before PostgreSQL checks who owns the first one.
    ("CREATE TEMPORARY TABLE child () INHERITS (snowflake_state.snowflake_portable_lock, public.locked)", "42501"),
    // The statement waits for transactions that have drawn an ID before PostgreSQL checks who owns the sequence.
    ("CREATE RULE nothing AS ON INSERT TO snowflake_state.snowflake_portable_state DO INSTEAD NOTHING", "42501"),
    // The function locks the table until the transaction ends, although it raises an error. The statement is cancelled at the end.
    (
        "BEGIN; DO $$ BEGIN PERFORM nextval(oid) FROM pg_class WHERE relname = 'snowflake_portable_lock'; EXCEPTION WHEN OTHERS THEN END $$;
         SELECT pg_sleep(1000)",
        "57014",
    ),
];

/// Returns an error if a session has to wait because of what another role does. `grant` is what the owner has granted.
fn check_locks(test: &str, script: &str, grant: &str) -> Result<(), String> {
    let (server, mut owner) = owned(test, script);
    owner.run("GRANT EXECUTE ON FUNCTION snowflake_nextval() TO app, web");
    owner.run(grant);
    let (mut busy, mut watch) = (server.connect_to("shop"), server.connect());
    busy.run("CREATE TABLE public.locked ()");
    let mut session = as_role(&server, "app");
    session.run("SET statement_timeout = '3s'");
    for (lock, expected) in LOCKS {
        let mut hostile = as_role(&server, "web");
        // The test ends even if a check fails while the statement waits.
        hostile.run(
            "SET statement_timeout = '60s';
             CREATE FUNCTION pg_temp.nap() RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS
                 'BEGIN PERFORM pg_sleep(1000); RETURN true; END'",
        );
        let process: i32 = hostile.one("SELECT pg_backend_pid()");
        let waits_or_failed = format!(
            "SELECT query ~ 'snowflake_portable' AND (coalesce(wait_event_type, '') IN ('Lock', 'Timeout') OR state <> 'active')
             FROM pg_stat_activity WHERE pid = {process}"
        );
        busy.run("BEGIN; LOCK TABLE public.locked; SELECT snowflake.snowflake_nextval()");
        let cancel = hostile.cancel_token();
        let (drawn, code) = thread::scope(|scope| {
            let attack = scope.spawn(|| hostile.code(lock));
            assert!(within(PATIENCE, || watch.one(&waits_or_failed)));
            // The state is then so far behind the clock that the session has to advance it.
            thread::sleep(Duration::from_millis(50));
            let drawn = session.code("SELECT snowflake.snowflake_nextval()");
            cancel.cancel_query(NoTls).expect("the server takes the request");
            busy.run("ROLLBACK");
            (drawn, attack.join().expect("a session"))
        });
        ensure!(drawn.is_none(), "a session waits because of {lock}: {drawn:?}");
        assert!(code.as_deref() == Some(expected) || !grant.is_empty(), "{lock}: {code:?}");
    }
    Ok(())
}

#[test]
fn no_lock_of_a_role_stops_issuing() {
    check_locks("hostile", &script("hostile"), "").unwrap();
}

#[test]
fn a_state_that_a_role_can_lock_is_caught() {
    let grant = "GRANT USAGE ON SCHEMA snowflake_state TO web";
    let outcome = check_locks("hostile_schema", &script("hostile_schema"), grant);
    assert_caught(outcome, "a session waits because of CREATE TEMPORARY TABLE");
    let mistake = ("IN SHARE UPDATE EXCLUSIVE MODE", "IN SHARE ROW EXCLUSIVE MODE");
    let outcome = check_locks("hostile_mode", &spoilt("hostile_mode", mistake), "");
    assert_caught(outcome, "a session waits because of BEGIN");
}

#[test]
fn neither_advisory_locks_nor_a_dump_stop_issuing() {
    let (server, mut owner) = owned("hostile_advisory", &script("hostile_advisory"));
    owner.run("GRANT EXECUTE ON FUNCTION snowflake_nextval() TO app, web");
    // Every advisory lock whose key could be meant: OIDs of the objects, and small numbers.
    let mut hostile = as_role(&server, "web");
    // Any role can take any advisory lock.
    hostile.run(
        "SELECT pg_advisory_lock(oid::bigint), pg_advisory_lock(0, oid::int), pg_advisory_lock(oid::int, 0)
             FROM pg_class WHERE relname LIKE 'snowflake%';
         SELECT pg_advisory_lock(n), pg_advisory_lock(0, n) FROM generate_series(0, 1000) AS n;
         BEGIN; SELECT snowflake.snowflake_nextval(); SAVEPOINT a; SELECT snowflake.snowflake_nextval()",
    );
    // A dump locks every table that it contains until it ends.
    let mut dump = server.connect_to("shop");
    dump.run(
        "BEGIN; LOCK TABLE snowflake_state.snowflake_portable_lock, snowflake_state.snowflake_portable_configuration IN ACCESS SHARE MODE",
    );
    let mut session = as_role(&server, "app");
    session.run("SET statement_timeout = '20s'");
    for _ in 0..12 {
        assert!(session.one::<i64>("SELECT snowflake.snowflake_nextval()") > 0);
        thread::sleep(Duration::from_millis(500));
    }
}

/// A role whose client reads nothing requests IDs, with these settings. Returns an error if its session keeps the lock while it waits for
/// the client.
fn check_unread(test: &str, script: &str, settings: &str) -> Result<(), String> {
    let (server, mut session) = plain(test);
    install(&mut session, script, &[]).expect("the script runs");
    session.run(
        "CREATE ROLE app LOGIN; SELECT snowflake_configure(7), snowflake_nextval();
         GRANT EXECUTE ON FUNCTION snowflake_nextval() TO app",
    );
    let notices = UnreadClient::capacity(&server, "app", settings);
    // The last messages that the client receives come before, during and after the time in which the session has the lock.
    for fewer in 0..notices {
        // The mark has to be flushed.
        session.run("SELECT setval('public_state.snowflake_portable_flushed', 0, false)");
        let mut client = UnreadClient::connect(&server, "app");
        client.run(settings);
        let fill = UnreadClient::fill(notices - fewer);
        client.send(&format!("DO $$ BEGIN {fill} PERFORM snowflake_nextval(); END $$"));
        let waits = client.waits(&mut session);
        let lock =
            "BEGIN; LOCK TABLE public_state.snowflake_portable_lock IN SHARE UPDATE EXCLUSIVE MODE NOWAIT; COMMIT";
        let code = session.code(lock);
        session.run("ROLLBACK");
        client.close(&mut session);
        ensure!(code.is_none(), "a session keeps the lock while its client does not read");
        if !waits {
            assert!(fewer > 0, "the connection takes more than it should");
            return Ok(());
        }
    }
    panic!("the session always waits");
}

const DEBUG: &str = "SET client_min_messages = debug5";
const EXIT: &str = "SET exit_on_error = on";

#[test]
fn a_client_that_does_not_read_keeps_nothing_locked() {
    check_unread("unread", &script("unread"), DEBUG).unwrap();
    check_unread("unread_exit", &script("unread_exit"), EXIT).unwrap();
}

#[test]
fn a_session_that_sends_messages_with_the_lock_is_caught() {
    let script = spoilt("unread_debug", ("SET client_min_messages = error", ""));
    assert_caught(check_unread("unread_debug", &script, DEBUG), "a session keeps the lock");
    let script = spoilt("unread_fatal", ("SET exit_on_error = off", ""));
    assert_caught(check_unread("unread_fatal", &script, EXIT), "a session keeps the lock");
}

/// Draws in one transaction while a different session draws as well. No lock remains.
#[test]
fn a_draw_leaves_no_lock_behind() {
    let (server, mut first) = issuing("unlocked_after", &[]);
    let mut second = server.connect();
    let mut before = 0;
    first.run("BEGIN");
    second.run("BEGIN; SET LOCAL statement_timeout = '20s'");
    for _ in 0..50 {
        for session in [&mut first, &mut second] {
            let id: i64 = session.one("SELECT snowflake_nextval()");
            assert!(id > before);
            before = id;
            thread::sleep(Duration::from_millis(3));
        }
    }
    let held = "SELECT count(*) FROM pg_locks WHERE relation = 'public_state.snowflake_portable_lock'::regclass";
    assert_eq!(second.one::<i64>(held), 0);
}
