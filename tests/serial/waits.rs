//! Which sessions wait for each other, and how a wait ends.

use std::thread;
use std::time::{Duration, Instant};

use cluster::{Answer, Client, Cluster, Stop, assert_caught, ensure, sqlstate, waiting};
use postgres::NoTls;

/// Longer than any statement that does not wait takes.
const LONG: Duration = Duration::from_secs(5);

fn server(name: &str) -> Cluster {
    let server = Cluster::builder(name).set("deadlock_timeout", "100ms").start();
    server.session().run(
        "SELECT snowflake_create_series('invoice', 'INV-{YYYY}-{n:4}', time_zone => 'UTC');
         SELECT snowflake_create_series('receipt', 'R-{YYYY}-{n:4}', time_zone => 'UTC');
         CREATE TABLE at_once (number text DEFAULT snowflake_serial('invoice', date '2026-05-05'));
         CREATE TABLE at_commit (number text, booked date DEFAULT '2026-05-05');
         SELECT snowflake_number_at_commit('at_commit', 'number', 'invoice', 'booked')",
    );
    server
}

/// One session runs a statement in a transaction that stays open. Whether another session waits with its statement.
fn waits(server: &Cluster, holder: &str, other: &str) -> bool {
    let mut session = server.connect();
    session.run("BEGIN");
    session.run(holder);
    let mut second = server.connect();
    second.run("SET lock_timeout = '300ms'");
    let code = second.code(other);
    session.run("ROLLBACK");
    assert!(code.is_none() || code.as_deref() == Some("55P03"), "{other}: {code:?}");
    code.is_some()
}

/// Checks which statements wait while a transaction that has run `holder` is open.
fn check_waits(server: &Cluster, holder: &str, waiting: &[&str], free: &[&str]) -> Result<(), String> {
    for other in waiting {
        ensure!(waits(server, holder, other), "{other} does not wait for {holder}");
    }
    for other in free {
        ensure!(!waits(server, holder, other), "{other} waits for {holder}");
    }
    Ok(())
}

const SERIAL: &str = "SELECT snowflake_serial('invoice', date '2026-05-05')";
const AT_ONCE: &str = "INSERT INTO at_once DEFAULT VALUES";
const AT_COMMIT: &str = "INSERT INTO at_commit DEFAULT VALUES";

#[test]
fn only_transactions_with_a_number_of_the_same_period_wait() {
    let server = server("serial_waits");
    let free = [
        "SELECT snowflake_serial('invoice', date '2025-05-05')",
        "SELECT snowflake_serial('receipt', date '2026-05-05')",
        "SELECT snowflake_serial_parse('invoice', 'INV-2026-0001')",
        "SELECT * FROM snowflake_serial_gaps('at_once', 'number', 'invoice')",
        "SELECT * FROM snowflake_series",
        "SELECT * FROM invoice",
    ];
    let alter = "SELECT snowflake_alter_series('invoice', start => 1)";
    check_waits(&server, AT_ONCE, &[SERIAL, AT_ONCE, AT_COMMIT, alter], &free).unwrap();
    // The number at COMMIT is not taken yet.
    check_waits(&server, AT_COMMIT, &[], &free).unwrap();
    check_waits(&server, AT_COMMIT, &[], &[SERIAL, AT_ONCE, AT_COMMIT, alter]).unwrap();
    // The negative control: the number is taken at the end of the statement.
    let immediate = "SET CONSTRAINTS ALL IMMEDIATE; INSERT INTO at_commit DEFAULT VALUES";
    assert_caught(check_waits(&server, immediate, &[], &[SERIAL]), " waits for SET CONSTRAINTS");
    // A session without the privileges does not even lock the table.
    let mut session = server.connect();
    session.run("CREATE ROLE stranger");
    let stranger = "SET LOCAL ROLE stranger; SAVEPOINT s; DO $$ BEGIN PERFORM snowflake_serial('invoice');
        EXCEPTION WHEN insufficient_privilege THEN NULL; END $$";
    check_waits(&server, stranger, &[], &["BEGIN; LOCK TABLE invoice; COMMIT", alter]).unwrap();
}

#[test]
fn a_prepared_transaction_has_its_number_and_keeps_the_others_waiting() {
    let (server, mut session) =
        Cluster::builder("serial_prepared").set("max_prepared_transactions", "1").start_session();
    session.run(
        "SELECT snowflake_create_series('invoice', 'INV-{n:4}');
         CREATE TABLE at_commit (number text);
         SELECT snowflake_number_at_commit('at_commit', 'number', 'invoice')",
    );
    session.run("BEGIN; INSERT INTO at_commit DEFAULT VALUES; PREPARE TRANSACTION 'first'");
    let mut second = server.connect();
    second.run("SET lock_timeout = '300ms'");
    let insert = "INSERT INTO at_commit DEFAULT VALUES";
    assert_eq!(second.code(insert).as_deref(), Some("55P03"));
    // Also after a restart of the server.
    let mut server = server;
    server.restart(Stop::Fast);
    let mut second = server.connect();
    second.run("SET lock_timeout = '300ms'");
    assert_eq!(second.code(insert).as_deref(), Some("55P03"));
    second.run("COMMIT PREPARED 'first'");
    // The number is free.
    second.run(insert);
    // A number of a prepared transaction that is rolled back is used again.
    second.run("BEGIN; INSERT INTO at_commit DEFAULT VALUES; PREPARE TRANSACTION 'third'");
    second.run("ROLLBACK PREPARED 'third'");
    // The number is free.
    second.run(insert);
    assert_eq!(second.all::<String>("SELECT number FROM at_commit ORDER BY 1"), ["INV-0001", "INV-0002", "INV-0003"]);
}

/// Starts a session that waits for the number that `holder` has taken, and returns its error.
fn ended(
    server: &Cluster,
    holder: &mut Client,
    setup: &str,
    end: impl FnOnce(&Client, i32),
) -> Result<(), postgres::Error> {
    holder.run(&format!("BEGIN; {SERIAL}"));
    let mut session = server.connect();
    session.run(setup);
    let pid: i32 = session.one("SELECT pg_backend_pid()");
    let token = session.cancel_token();
    let waiter = thread::spawn(move || {
        let outcome = session.batch_execute(SERIAL);
        (session, outcome)
    });
    assert!(waiting(&mut server.connect(), || waiter.is_finished()), "nobody waits");
    let begun = Instant::now();
    end(holder, pid);
    if setup.contains("cancel") {
        token.cancel_query(NoTls).unwrap();
    }
    if setup.contains("committed") {
        holder.run("COMMIT");
    }
    let (mut session, outcome) = waiter.join().expect("a session");
    assert!(begun.elapsed() < LONG, "{:?}", begun.elapsed());
    // The session goes on, and holds nothing.
    if outcome.as_ref().is_err_and(|error| error.as_db_error().is_some_and(|e| e.code().code() != "57P01")) {
        assert_eq!(session.one::<i32>("SELECT pg_backend_pid()"), pid);
    }
    let _ = holder.batch_execute("ROLLBACK");
    outcome
}

#[test]
fn a_wait_ends_by_cancel_timeout_termination_and_commit() {
    let server = server("serial_wait_ends");
    let mut holder = server.connect();
    let code = |outcome: Result<(), postgres::Error>| outcome.err().map(|error| sqlstate(&error).0);
    let nothing = |_: &Client, _| {};
    assert_eq!(code(ended(&server, &mut holder, "SET application_name = 'cancel'", nothing)).as_deref(), Some("57014"));
    assert_eq!(code(ended(&server, &mut holder, "SET lock_timeout = '1s'", nothing)).as_deref(), Some("55P03"));
    assert_eq!(code(ended(&server, &mut holder, "SET statement_timeout = '1s'", nothing)).as_deref(), Some("57014"));
    assert_eq!(code(ended(&server, &mut holder, "SET application_name = 'committed'", nothing)), None);
    let ended = ended(&server, &mut holder, "", |_, pid| {
        assert!(server.connect().one::<bool>(&format!("SELECT pg_terminate_backend({pid})")));
    });
    assert!(ended.is_err());
    // COMMIT waits in the same way, and the row is not inserted. PostgreSQL does not apply statement_timeout to COMMIT.
    holder.run(&format!("BEGIN; {SERIAL}"));
    let mut session = server.connect();
    session.run(&format!("SET lock_timeout = '300ms'; BEGIN; {AT_COMMIT}"));
    assert_eq!(session.code("COMMIT").as_deref(), Some("55P03"));
    session.run(&format!("SET lock_timeout = 0; SET statement_timeout = '300ms'; BEGIN; {AT_COMMIT}"));
    let token = session.cancel_token();
    let waiter = thread::spawn(move || {
        let code = session.code("COMMIT");
        (code, session.one::<i64>("SELECT count(*) FROM at_commit"))
    });
    thread::sleep(Duration::from_secs(1));
    assert!(!waiter.is_finished(), "statement_timeout ends COMMIT");
    token.cancel_query(NoTls).unwrap();
    assert_eq!(waiter.join().expect("a session"), (Some("57014".into()), 0));
    holder.run("ROLLBACK");
    // Nothing was lost.
    let last: i64 = server.connect().one("SELECT last_number FROM invoice WHERE period = '2026'");
    assert_eq!(last, 2);
}

#[test]
fn a_deadlock_of_two_series_is_detected() {
    let server = server("serial_deadlock");
    let (mut one, mut other) = (server.connect(), server.connect());
    let receipt = "SELECT snowflake_serial('receipt', date '2026-05-05')";
    one.run(&format!("BEGIN; {SERIAL}"));
    other.run(&format!("BEGIN; {receipt}"));
    let second = thread::spawn(move || (one.code(receipt), one.code("COMMIT")));
    assert!(waiting(&mut server.connect(), || second.is_finished()), "nobody waits");
    let code = other.code(SERIAL);
    let _ = other.batch_execute("ROLLBACK");
    let (first, _) = second.join().expect("a session");
    assert!([code.as_deref(), first.as_deref()].contains(&Some("40P01")), "{code:?} {first:?}");
    assert!([&code, &first].contains(&&None), "one of them goes on");
}

#[test]
fn a_transaction_with_one_snapshot_is_refused_after_another_has_taken_a_number() {
    let server = server("serial_snapshot");
    let (mut one, mut other) = (server.connect(), server.connect());
    one.run(SERIAL);
    for level in ["REPEATABLE READ", "SERIALIZABLE"] {
        one.run(&format!("BEGIN ISOLATION LEVEL {level}; SELECT 1"));
        other.run(SERIAL);
        assert_eq!(one.code(SERIAL).as_deref(), Some("40001"), "{level}");
        one.run("ROLLBACK");
        // Again, as the client would.
        one.run(&format!("BEGIN ISOLATION LEVEL {level}; {SERIAL}; COMMIT"));
        // At COMMIT.
        one.run(&format!("BEGIN ISOLATION LEVEL {level}; {AT_COMMIT}"));
        other.run(SERIAL);
        assert_eq!(one.code("COMMIT").as_deref(), Some("40001"), "{level}");
        // The definition cannot change its periods, because the transaction might not see the counters.
        one.run(&format!("BEGIN ISOLATION LEVEL {level}"));
        let alter = "SELECT snowflake_alter_series('receipt', template => 'R-{n:4}')";
        assert_eq!(one.code(alter).as_deref(), Some("55000"), "{level}");
        one.run("ROLLBACK");
    }
}

/// A series that changes while sessions use it: a session that has a plan of it, or waits for it, uses the new definition.
#[test]
fn a_definition_that_changes_is_used_at_once() {
    let server = server("serial_changes");
    let (mut session, mut owner) = (server.connect(), server.connect());
    let mut next = |expected: &str| {
        let serial: String = session.one(SERIAL);
        assert_eq!(serial, expected);
    };
    next("INV-2026-0001");
    owner.run("SELECT snowflake_alter_series('invoice', template => 'RE-{YYYY}-{n:4}')");
    next("RE-2026-0002");
    owner.run("ALTER TABLE invoice RENAME TO other; ALTER TABLE receipt RENAME TO invoice");
    next("R-2026-0001");
    owner.run("BEGIN; SELECT snowflake_alter_series('invoice', template => 'Q-{YYYY}-{n:4}')");
    let mut waiter = server.connect();
    let waiter = thread::spawn(move || waiter.one::<String>(SERIAL));
    assert!(waiting(&mut server.connect(), || waiter.is_finished()), "nobody waits");
    owner.run("COMMIT");
    assert_eq!(waiter.join().expect("a session"), "Q-2026-0002");
    owner.run("DROP TABLE invoice");
    assert_eq!(session.code(SERIAL).as_deref(), Some("42P01"));
    owner.run("SELECT snowflake_create_series('invoice', 'NEW-{n:2}')");
    assert_eq!(session.one::<String>(SERIAL), "NEW-01");
}
