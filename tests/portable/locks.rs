//! No session waits for what a role other than the owner has locked, or for a session whose client does not read.

use std::thread;
use std::time::Duration;

use cluster::{Answer, UnreadClient, assert_caught, ensure};
use postgres::NoTls;

use crate::server::{as_role, install, issuing, mistaken, owned, plain, script, spoilt};

/// Attempts to lock the table that is only locked. Any role can run these statements.
const LOCKS: [&str; 2] = [
    // The planner calls the function before PostgreSQL checks the privilege.
    "INSERT INTO LOCK.snowflake_portable_lock SELECT WHERE pg_temp.nap()",
    // The statement waits for the second table before PostgreSQL checks who owns the first one.
    "CREATE TEMPORARY TABLE child () INHERITS (LOCK.snowflake_portable_lock, public.locked)",
];

/// Returns an error if a session has to wait because of what another role does.
fn check_locks(test: &str, script: &str, schema: &str) -> Result<(), String> {
    let (server, mut owner) = owned(test, script);
    owner.run("GRANT EXECUTE ON FUNCTION snowflake_nextval() TO app, web");
    let mut watch = server.connect_to("shop");
    watch.run("CREATE TABLE public.locked ()");
    let mut session = as_role(&server, "app");
    session.run("SET statement_timeout = '3s'");
    for lock in LOCKS {
        let mut hostile = as_role(&server, "web");
        hostile.run(
            "CREATE FUNCTION pg_temp.nap() RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS
                 'BEGIN PERFORM pg_sleep(1000); RETURN true; END'",
        );
        watch.run("BEGIN; LOCK TABLE public.locked");
        let cancel = hostile.cancel_token();
        let drawn = thread::scope(|scope| {
            let attack = scope.spawn(|| hostile.code(&lock.replace("LOCK", schema)));
            thread::sleep(Duration::from_millis(300));
            // The session has to advance the state.
            let drawn = session.code("SELECT snowflake.snowflake_nextval()");
            let _ = cancel.cancel_query(NoTls);
            watch.run("ROLLBACK");
            attack.join().expect("a session").map(|code| (drawn, code))
        });
        let (drawn, code) = drawn.expect("the statement fails");
        ensure!(drawn.is_none(), "a session waits because of {lock}: {drawn:?}");
        assert_eq!(code, "42501", "{lock}");
    }
    Ok(())
}

#[test]
fn no_lock_of_a_role_stops_issuing() {
    check_locks("hostile", &script("hostile"), "snowflake_lock").unwrap();
}

#[test]
fn a_lock_in_the_schema_of_the_functions_is_caught() {
    let mistakes = [
        ("EXECUTE pg_catalog.format('CREATE SCHEMA %I', lock_schema);", ""),
        ("left(current_schema(), 58) || '_lock'", "current_schema()"),
        ("IF EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = lock_schema)", "IF false"),
        ("WHERE nspname = lock_schema", "WHERE false"),
    ];
    let script = mistaken("hostile_schema", &mistakes);
    assert_caught(check_locks("hostile_schema", &script, "snowflake"), "a session waits because of");
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
        "BEGIN; LOCK TABLE snowflake_lock.snowflake_portable_lock, snowflake.snowflake_portable_configuration IN ACCESS SHARE MODE",
    );
    let mut session = as_role(&server, "app");
    session.run("SET statement_timeout = '20s'");
    for _ in 0..12 {
        assert!(session.one::<i64>("SELECT snowflake.snowflake_nextval()") > 0);
        thread::sleep(Duration::from_millis(500));
    }
}

/// A role whose client reads nothing requests IDs and debug messages. Returns an error if its session keeps the lock while it waits for
/// the client.
fn check_unread(test: &str, script: &str) -> Result<(), String> {
    let (server, mut session) = plain(test);
    install(&mut session, script, &[]).expect("the script runs");
    session.run(
        "CREATE ROLE app LOGIN; SELECT snowflake_configure(7), snowflake_nextval();
         GRANT EXECUTE ON FUNCTION snowflake_nextval() TO app",
    );
    let setup = "SET client_min_messages = debug5";
    let notices = UnreadClient::capacity(&server, "app", setup);
    // The last messages that the client receives come before, during and after the time in which the session has the lock.
    for fewer in 0..notices {
        // The mark has to be flushed.
        session.run("SELECT setval('snowflake_portable_flushed', 0, false)");
        let mut client = UnreadClient::connect(&server, "app");
        client.run(setup);
        let fill = UnreadClient::fill(notices - fewer);
        client.send(&format!("DO $$ BEGIN {fill} PERFORM snowflake_nextval(); END $$"));
        let waits = client.waits(&mut session);
        let free = session
            .code("BEGIN; LOCK TABLE public_lock.snowflake_portable_lock IN SHARE ROW EXCLUSIVE MODE NOWAIT; COMMIT");
        session.batch_execute("ROLLBACK").expect("a transaction can end");
        client.close(&mut session);
        ensure!(free.is_none(), "a session keeps the lock while its client does not read");
        if !waits {
            return Ok(());
        }
    }
    panic!("the session always waits");
}

#[test]
fn a_client_that_does_not_read_keeps_nothing_locked() {
    check_unread("unread", &script("unread")).unwrap();
}

#[test]
fn a_session_that_sends_messages_with_the_lock_is_caught() {
    let mistake = ("VOLATILE SET client_min_messages = error", "VOLATILE");
    assert_caught(check_unread("unread_debug", &spoilt("unread_debug", mistake)), "a session keeps the lock");
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
    let held = "SELECT count(*) FROM pg_locks WHERE relation = 'public_lock.snowflake_portable_lock'::regclass";
    assert_eq!(second.one::<i64>(held), 0);
}
