//! The portable functions that issue IDs: what they return, and the errors that they share with the library.

use cluster::{Answer, Client, Cluster, Stop, check_increasing, check_unique, copy_ids};

use crate::server::{issuing, plain_builder, script, twin};

/// How far the time of an ID is from the clock, in milliseconds.
const AGE: &str = "extract(epoch FROM snowflake_timestamp(id) - clock_timestamp())::float8 * 1000";

#[test]
fn ids_have_the_worker_id_and_the_time_of_the_clock() {
    let (_server, mut session) = issuing("issue", &[]);
    let worker = "SELECT count(*) FROM (SELECT snowflake_nextval() FROM generate_series(1, 1000)) AS ids (id),
        snowflake_decode(id) WHERE worker_id = 7";
    assert_eq!(session.one::<i64>(worker), 1_000);
    let mut ids = copy_ids(&mut session, "SELECT snowflake_nextval() FROM generate_series(1, 300000)");
    check_increasing(&ids).unwrap();
    for _ in 0..100 {
        let id = session.one::<i64>("SELECT snowflake_nextval()");
        assert_eq!(session.one::<i64>("SELECT snowflake_currval()"), id);
        ids.push(id);
    }
    let batch = copy_ids(&mut session, "SELECT snowflake_nextval_batch(10000)");
    assert_eq!(batch.len(), 10_000);
    ids.extend(batch);
    for count in [1, 2, 4096] {
        let first = session.one::<i64>(&format!("SELECT snowflake_reserve({count})"));
        assert_eq!(first & 4095, 0, "a block begins a tick");
        ids.extend(first..first + count);
        assert_eq!(session.one::<i64>("SELECT snowflake_currval()"), first + count - 1);
    }
    check_increasing(&ids).unwrap();
    check_unique(&mut ids).unwrap();
    // A rollback takes nothing back.
    session.run("BEGIN; SAVEPOINT a; SELECT snowflake_nextval_batch(5000); ROLLBACK TO a; ROLLBACK");
    assert!(session.one::<i64>("SELECT snowflake_nextval()") > ids[ids.len() - 1]);
    // The session pauses between two IDs. The clock is read when the ID is there.
    let ages = format!(
        "SELECT min(age) >= -200 AND max(age) <= 1 AND percentile_cont(0.5) WITHIN GROUP (ORDER BY age) > -20 FROM (
             SELECT {AGE} AS age FROM (SELECT pg_sleep(0.005), snowflake_nextval() AS id FROM generate_series(1, 100) OFFSET 0) AS ids
             OFFSET 0) AS ages"
    );
    assert!(session.one::<bool>(&ages));
}

#[test]
fn at_the_limit_of_the_layout_ids_are_at_most_a_tick_over_100_ms_ahead() {
    // Two IDs a millisecond, which one session exceeds even if other programs use most of the processor time.
    let (_server, mut session) = issuing("issue_limit", &[("snowflake_pg.layout", "41:10:1")]);
    let lead = format!(
        "SELECT max({AGE}) FROM (SELECT snowflake_nextval() AS id FROM generate_series(1, 1000) OFFSET 0) AS ids"
    );
    let lead: f64 = session.one(&lead);
    assert!((50.0..=110.0).contains(&lead), "{lead} ms");
}

#[test]
fn the_clock_set_back_by_an_hour_pauses_no_session() {
    let server = plain_builder("issue_back").clock("+0").start();
    let mut session = server.connect();
    crate::server::install(&mut session, &script("issue_back"), &[]).expect("the script runs");
    session.run("SELECT snowflake_configure(7)");
    let mut ids = copy_ids(&mut session, "SELECT snowflake_nextval_batch(5000)");
    server.set_clock("-3600");
    session.run("SET statement_timeout = '60s'");
    ids.extend(copy_ids(&mut session, "SELECT snowflake_nextval_batch(50000)"));
    ids.push(session.one("SELECT snowflake_reserve(4096)"));
    check_increasing(&ids).unwrap();
    let lead: bool = session.one("SELECT lead BETWEEN '59 minutes' AND '1 hour 1 minute' FROM snowflake_status");
    assert!(lead);
}

/// Calls whose errors are those of the library.
const CALLS: [&str; 10] = [
    "snowflake_nextval_batch(0)",
    "snowflake_nextval_batch(-1)",
    "snowflake_nextval_batch(10000001)",
    "snowflake_reserve(0)",
    "snowflake_reserve(-2147483648)",
    "snowflake_reserve(4097)",
    "snowflake_currval()",
    "snowflake_set_mark(0)",
    "snowflake_set_mark(-1)",
    "snowflake_set_mark(9223372036854775807 - 1) / 0",
];

fn refusal(session: &mut Client, call: &str) -> [String; 4] {
    session.error(&format!("SELECT {call}"))
}

#[test]
fn errors_of_issuing_are_those_of_the_library() {
    let (_twin, mut twin) = issuing("issue_errors", &[]);
    let (_library, mut library) = Cluster::builder("portable_issue_errors_library").start_session();
    for call in &CALLS[..9] {
        assert_eq!(refusal(&mut twin, call), refusal(&mut library, call), "{call}");
    }
    let (ours, theirs) = (refusal(&mut twin, CALLS[9]), refusal(&mut library, CALLS[9]));
    assert_eq!(ours[..2], theirs[..2]);
    for call in ["snowflake_nextval_batch(NULL)", "snowflake_reserve(NULL)", "snowflake_set_mark(NULL)"] {
        let null = format!("SELECT count(id) FROM {call} AS id");
        assert_eq!((twin.one::<i64>(&null), library.one::<i64>(&null)), (0, 0), "{call}");
    }
    let (_twin, mut twin) = issuing("issue_errors_sonyflake", &[("snowflake_pg.layout", "sonyflake")]);
    let (_library, mut library) =
        Cluster::builder("portable_issue_sonyflake").set("snowflake_pg.layout", "sonyflake").start_session();
    assert_eq!(refusal(&mut twin, "snowflake_reserve(2)"), refusal(&mut library, "snowflake_reserve(2)"));
    let parts = "SELECT worker_id FROM snowflake_decode(snowflake_nextval())";
    assert_eq!(twin.one::<i32>(parts), 7);
    // 2^31 ms are 24 days.
    let (_twin, mut twin) = issuing("issue_errors_end", &[("snowflake_pg.layout", "31:10:12")]);
    let [code, message, detail, _] = refusal(&mut twin, "snowflake_nextval()");
    assert_eq!([code, message], ["2200H", "the timestamps of layout \"31:10:12\" are exhausted"]);
    assert_eq!(detail, "The last tick of this layout ends at 2010-11-28T22:14:18.305+00:00.");
}

#[test]
fn a_transaction_that_cannot_write_issues_nothing() {
    let (_server, mut session) = issuing("issue_read_only", &[]);
    let ours = "cannot issue an ID in a read-only transaction";
    let of_postgresql = "cannot execute nextval() in a read-only transaction";
    let read_only = |session: &mut Client, call: &str, expected: &str| {
        session.run("SET default_transaction_read_only = on");
        let [code, message, detail, hint] = refusal(session, call);
        assert_eq!([code, message], ["25006", expected], "{call}");
        if expected == ours {
            assert_eq!(detail, "IDs are drawn from a sequence, which a read-only transaction cannot change.");
            assert_eq!(hint, "Use a read-write transaction.");
        }
        session.run("SET default_transaction_read_only = off");
    };
    read_only(&mut session, "snowflake_nextval()", ours);
    session.run("SELECT snowflake_nextval()");
    // The tick has more IDs, so the function draws at once.
    read_only(&mut session, "snowflake_nextval()", of_postgresql);
    read_only(&mut session, "snowflake_nextval_batch(3)", of_postgresql);
    read_only(&mut session, "snowflake_reserve(3)", ours);
    // The functions are PARALLEL UNSAFE, so no worker runs them.
    session.run(
        "CREATE TABLE orders AS SELECT n FROM generate_series(1, 100000) AS n; ANALYZE orders;
         SET min_parallel_table_scan_size = 0; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0",
    );
    let query = "SELECT count(*) FROM orders WHERE";
    assert!(session.plan(&format!("{query} n % 2 = 1")).contains("Gather"));
    for call in ["snowflake_nextval()", "snowflake_reserve(1)", "snowflake_currval()"] {
        assert!(!session.plan(&format!("{query} {call} > n")).contains("Gather"), "{call}");
    }
    // An owner who declares something else gets an error, and not an ID that no client receives.
    session.run("ALTER FUNCTION snowflake_nextval() PARALLEL SAFE");
    assert!(session.plan(&format!("{query} snowflake_nextval() > n")).contains("Gather"));
    let (code, message) = session.refusal(&format!("{query} snowflake_nextval() > n"));
    // The leader reports the call of nextval(), and a worker before PostgreSQL 18 the subtransaction in which it reads the identity.
    assert!(code == "25000" && message.ends_with(" during a parallel operation"), "{code}: {message}");
}

#[test]
fn before_the_epoch_nothing_is_issued_without_the_library() {
    let (_server, mut session) = issuing("issue_epoch", &[("snowflake_pg.epoch", "2190-01-01Z")]);
    for call in ["snowflake_nextval()", "snowflake_nextval_batch(3)", "snowflake_reserve(3)"] {
        let [code, message, detail, hint] = refusal(&mut session, call);
        assert_eq!([code, message], ["55000", "the clock is before the epoch"], "{call}");
        assert_eq!(detail, "The epoch is 2190-01-01T00:00:00+00:00.");
        assert_eq!(hint, "Correct the server's clock.");
    }
    assert_eq!(session.one::<String>("SELECT concat_ws(' ', state, last_id, mark) FROM snowflake_status"), "idle");
}

#[test]
fn without_a_worker_id_nothing_is_issued_and_the_hint_works() {
    let (_server, mut session) = twin("issue_unset", &script("issue_unset"));
    for call in ["snowflake_nextval()", "snowflake_nextval_batch(3)", "snowflake_reserve(3)", "snowflake_set_mark(1)"] {
        let [code, message, _, hint] = refusal(&mut session, call);
        assert_eq!([code, message], ["55000", "the worker ID is not configured"], "{call}");
        assert!(hint.contains("snowflake_configure(worker_id => 1)"), "{hint}");
    }
    let shown = "SELECT concat_ws(' ', state, problem, worker_id) FROM snowflake_status";
    assert_eq!(session.one::<String>(shown), "refused the worker ID is not configured");
    for (call, message) in [
        ("snowflake_configure(1024)", "worker ID 1024 is out of range"),
        ("snowflake_configure(-1)", "worker ID -1 is out of range"),
        ("snowflake_configure(1, 1)", "datacenter ID 1 is out of range"),
    ] {
        let [code, found, ..] = refusal(&mut session, call);
        assert_eq!([code, found], ["22023", message]);
    }
    assert_eq!(refusal(&mut session, "snowflake_configure(NULL)")[0], "22004");
    // The hint works.
    session.run("SELECT snowflake_configure(worker_id => 1)");
    assert!(session.one::<i64>("SELECT snowflake_nextval()") > 0);
}

#[test]
fn a_mark_makes_ids_begin_above_it_and_does_not_go_down() {
    let (mut server, mut session) = issuing("issue_mark", &[]);
    let above = "SELECT snowflake_max_id(now() + interval '1 hour')";
    let mark: i64 = session.one(above);
    session.run(&format!("SELECT snowflake_set_mark({mark})"));
    let first: i64 = session.one("SELECT snowflake_nextval()");
    assert!(first > mark);
    // A lower mark changes nothing.
    session.run(&format!("SELECT snowflake_set_mark({})", mark - (1 << 40)));
    assert!(session.one::<i64>("SELECT snowflake_nextval()") > first);
    let last: i64 = session.one("SELECT snowflake_nextval()");
    let shown: (bool, bool) = (
        session.one(&format!("SELECT last_id = {last} AND mark > last_id FROM snowflake_status")),
        session.one("SELECT lead > '59 minutes' AND mark_lead < lead + interval '10 s' FROM snowflake_status"),
    );
    assert_eq!(shown, (true, true));
    for how in [Stop::Fast, Stop::Immediate] {
        server.restart(how);
        session = server.connect();
        assert!(session.one::<i64>("SELECT snowflake_nextval()") > last, "{how:?}");
    }
}

#[test]
fn a_newer_script_keeps_the_worker_id_and_refuses_a_different_layout() {
    let (_server, mut session) = issuing("issue_newer", &[]);
    let script = script("issue_newer");
    session.run(
        "CREATE ROLE app; GRANT EXECUTE ON FUNCTION snowflake_nextval() TO app;
         CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval())",
    );
    let before: i64 = session.one("SELECT snowflake_nextval()");
    crate::server::install(&mut session, &script, &[]).expect("the script runs again");
    let after: i64 = session.one("INSERT INTO orders DEFAULT VALUES RETURNING id");
    assert!(after > before && (after >> 12) & 1023 == 7);
    // The grant remains.
    session.run("SET ROLE app; SELECT snowflake_nextval(); RESET ROLE");
    let changed = [("snowflake_pg.layout", "41:9:13")];
    let (code, message, detail, _) =
        crate::server::install(&mut session, &script, &changed).expect_err("the layout is a different one");
    assert_eq!([code, message], ["55000", "IDs of this database have layout \"41:10:12\""]);
    assert_eq!(detail, "With a different layout or epoch, the functions might issue an ID again.");
    assert_eq!(session.one::<String>("SELECT snowflake_describe(0) ->> 'layout'"), "41:10:12");
    // A different worker ID.
    session.run("SELECT snowflake_configure(8)");
    let other: i64 = session.one("INSERT INTO orders DEFAULT VALUES RETURNING id");
    assert!(other > after && (other >> 12) & 1023 == 8);
}

/// The functions see the worker ID, and the reservation has all of its IDs, whatever the snapshot of the transaction.
#[test]
fn a_transaction_with_an_old_snapshot_issues_ids() {
    let (server, mut session) = twin("issue_snapshot", &script("issue_snapshot"));
    session.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class");
    server.connect().run("SELECT snowflake_configure(7)");
    let first: i64 = session.one("SELECT snowflake_nextval()");
    let block: i64 = session.one("SELECT snowflake_reserve(10)");
    assert_eq!([first, block].map(|id| (id >> 12) & 1023), [7, 7]);
    assert_eq!(session.one::<i64>("SELECT snowflake_currval()"), block + 9);
    assert!(session.one::<i64>("SELECT snowflake_nextval()") > block + 9);
}
