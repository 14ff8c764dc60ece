//! What a superuser does after the clock or the mark was wrong: each of the two functions says no where IDs could repeat.

use std::thread;
use std::time::Duration;

use cluster::{Answer, Ask, Chance, Client, Cluster, Load, Stop, check_ledger, sqlstate, within};

/// Longest time in which a changed clock is noticed.
const NOTICED: Duration = Duration::from_secs(10);

const TWO_YEARS: &str = "+63072000";

#[test]
fn only_superusers_and_whom_they_allow_may_repair() {
    let server = Cluster::builder("repair_rights").start();
    let mut admin = server.session();
    admin.batch_execute("CREATE ROLE clerk LOGIN").expect("a superuser may");
    let mut clerk = server.connect_as("clerk");
    assert!(clerk.one::<i64>("SELECT snowflake_nextval()") > 0);
    let functions = ["snowflake_accept_clock()", "snowflake_set_mark(1)"];
    for function in functions {
        let (code, message) = clerk.refusal(&format!("SELECT {function}"));
        assert_eq!(code, "42501");
        assert!(message.starts_with("permission denied for function"), "{message}");
    }
    admin.batch_execute("GRANT EXECUTE ON FUNCTION snowflake_accept_clock() TO clerk").expect("a superuser may");
    assert_eq!(clerk.code("SELECT snowflake_accept_clock()"), None);
}

#[test]
fn a_jump_is_followed_once_it_is_accepted() {
    let server = Cluster::builder("repair_jump").clock("+0").start();
    let mut session = server.session();
    session.lead();
    server.set_clock(TWO_YEARS);
    let noticed = || {
        session.one::<i64>("SELECT snowflake_nextval()");
        server.log().contains("WARNING:  snowflake_pg: the clock was set forward by 63072")
    };
    assert!(within(NOTICED, noticed), "{}", server.log());
    assert!(session.lead() < -63_000_000.0, "the jump was followed");
    let moved: f64 = session.one("SELECT extract(epoch FROM snowflake_accept_clock())::float8");
    assert!((63_071_990.0..63_072_010.0).contains(&moved), "{moved}");
    assert!(session.lead().abs() < 1.0);
    assert!(server.log().contains("snowflake_pg: the clock was accepted at "), "{}", server.log());
    // Nothing to accept, nothing moved.
    assert!(session.one::<f64>("SELECT extract(epoch FROM snowflake_accept_clock())::float8") < 1.0);
    // A clock for which there are no IDs: the default layout ends in 2080.
    server.set_clock("+2500000000");
    let (code, message, detail, hint) =
        sqlstate(&session.batch_execute("SELECT snowflake_accept_clock()").unwrap_err());
    assert!(code == "55000" && message.contains("for which layout \"41:10:12\" has no IDs"), "{code} {message}");
    assert!(detail.contains("end before 2080-") && hint == "Set the server's clock.", "{detail} {hint}");
}

#[test]
fn a_mark_poisoned_by_a_clock_far_ahead_is_lowered_to_the_ids_that_are() {
    let mut server = Cluster::builder("repair_poison").clock("+0").start();
    let mut session = server.session();
    session
        .batch_execute("CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), n int)")
        .expect("a superuser may");
    let mut ids: Vec<i64> = session.all("INSERT INTO orders (n) SELECT generate_series(1, 1000) RETURNING id");
    server.stop(Stop::Immediate);
    server.set_clock(TWO_YEARS);
    server.start();
    let poisoned: i64 = server.session().one("SELECT snowflake_nextval()");
    server.stop(Stop::Immediate);
    server.set_clock("+0");
    server.start();
    let mut session = server.session();
    assert_eq!(session.code("SELECT snowflake_nextval()").as_deref(), Some("55000"));
    thread::sleep(Duration::from_millis(50));
    // Too low, by the table's word; without a table, on nobody's word.
    let highest = ids.iter().copied().max().unwrap();
    let refused =
        sqlstate(&session.batch_execute(&format!("SELECT snowflake_set_mark({highest}, 'orders')")).unwrap_err());
    assert_eq!(
        (refused.0.as_str(), refused.1),
        ("55000", format!("mark {highest} is not above the IDs of public.orders"))
    );
    assert_eq!(refused.2, format!("The highest ID of this server in it is {highest}, and would be issued again."));
    let refused = sqlstate(&session.batch_execute("SELECT snowflake_set_mark(snowflake_max_id(now()))").unwrap_err());
    assert_eq!(refused.0, "55000");
    assert!(refused.1.contains("is below the high-water mark, which is"), "{}", refused.1);
    assert!(refused.3.contains("force => true"), "{}", refused.3);
    let before: i64 = session.one("SELECT snowflake_set_mark(snowflake_max_id(now()), 'orders')");
    assert!(before > poisoned);
    assert!(server.log().contains("snowflake_pg: the high-water mark was set to "), "{}", server.log());
    // At once, at the right time, and not below what there is; also after a crash.
    assert!(session.lead().abs() < 1.0);
    ids.extend(session.all::<i64>("INSERT INTO orders (n) SELECT generate_series(1, 1000) RETURNING id"));
    server.stop(Stop::Immediate);
    server.set_clock("-2");
    server.start();
    ids.extend(server.session().batch(5000));
    check_ledger(&mut ids).unwrap();
}

#[test]
fn a_mark_is_compared_with_this_servers_ids_alone_and_with_rows_that_are_not_committed() {
    let server = Cluster::builder("repair_tables").start();
    let mut session = server.session();
    session
        .batch_execute(
            "CREATE TABLE a (id bigint PRIMARY KEY); CREATE TABLE b (key bigint);
             CREATE VIEW every_id AS SELECT id FROM a UNION ALL SELECT key FROM b",
        )
        .expect("a superuser may");
    let mark: i64 = session.one("SELECT snowflake_nextval()");
    // Another server's ID above the mark does not count, this server's does.
    session
        .batch_execute("INSERT INTO a SELECT snowflake_encode(now() + interval '1 hour', 2, 0)")
        .expect("another's ID");
    let set = |table: &str| format!("SELECT snowflake_set_mark({mark}, {table})");
    assert_eq!(session.code(&set("'a'")), None);
    session.batch_execute("INSERT INTO b SELECT snowflake_encode(now() + interval '1 hour', 1, 0)").expect("its own");
    assert_eq!(session.code(&set("'a'")), None);
    assert_eq!(session.refusal(&set("'b', 'key'")).0, "55000");
    let (code, message) = session.refusal(&set("'every_id'"));
    assert!(code == "55000" && message.ends_with("is not above the IDs of public.every_id"), "{message}");
    assert_eq!(session.code(&set("'b', 'key', force => true")), None);
    assert!(server.log().contains(&format!("the high-water mark was set to {mark} by force")), "{}", server.log());
    assert_eq!(session.refusal(&set("'b', 'missing'")).0, "42703");
    assert_eq!(session.refusal(&set("1")), ("42P01".into(), "relation with OID 1 does not exist".into()));
    let (code, message, detail, hint) =
        sqlstate(&session.batch_execute(&format!("BEGIN; DELETE FROM b; {}", set("'b', 'key'"))).expect_err("refused"));
    assert_eq!(
        (code.as_str(), message.as_str()),
        ("25001", "a mark cannot be compared with a table in this transaction")
    );
    assert!(detail.starts_with("It may not see all rows") && hint.contains("READ COMMITTED"), "{detail} {hint}");
    session.batch_execute("ROLLBACK").expect("a rollback");

    // A row that is not committed: waited for, cancellably, and then seen.
    let mut writer = server.connect();
    writer
        .batch_execute("BEGIN; INSERT INTO a SELECT snowflake_encode(now() + interval '1 hour', 1, 1)")
        .expect("a transaction");
    let (code, _) = session.refusal(&format!("SET statement_timeout = 200; {}", set("'a'")));
    assert_eq!(code, "57014");
    session.batch_execute("RESET statement_timeout").expect("a session may");
    let statement = set("'a'");
    let waiting = thread::spawn(move || session.refusal(&statement).0);
    thread::sleep(Duration::from_millis(100));
    writer.batch_execute("COMMIT").expect("a commit");
    assert_eq!(waiting.join().expect("a thread that ends"), "55000");
}

#[test]
fn a_mark_out_of_range_is_refused() {
    let server = Cluster::builder("repair_range").set("snowflake_pg.layout", "41:5:5:11").start();
    let mut session = server.session();
    let ask = |session: &mut Client, arguments: &str| {
        let result = session.batch_execute(&format!("SELECT snowflake_set_mark({arguments})"));
        result.err().map(|error| sqlstate(&error))
    };
    for mark in ["0", "-1", "9223372036854775807"] {
        let (code, message, detail, hint) = ask(&mut session, mark).expect("refused");
        assert_eq!((code.as_str(), message), ("22023", format!("mark {mark} is out of range")));
        assert_eq!(detail, "It must be from 1 to 4611686018427387903, the largest ID of layout \"41:5:5:11\".");
        assert_eq!(hint, "Pass the highest ID that may have been issued, and 1 more.");
    }
    // Nothing could be issued above it for a while.
    let (code, message, ..) = ask(&mut session, "snowflake_max_id(now() + interval '2 days')").expect("refused");
    assert_eq!(code, "22023");
    assert!(message.ends_with("is more than a day ahead of the clock"), "{message}");
    assert_eq!(session.one::<Option<i64>>("SELECT snowflake_set_mark(NULL)"), None);
    // Upwards, without a question; IDs begin there.
    let (mark, before): (i64, i64) = {
        let row = session
            .query_one("SELECT m, snowflake_set_mark(m) FROM snowflake_max_id(now() + interval '1 hour') AS m", &[])
            .expect("upwards");
        (row.get(0), row.get(1))
    };
    assert!(before < mark);
    assert!(session.one::<i64>("SELECT snowflake_nextval()") >= mark);
    // Below every ID: the clock decides.
    assert!(session.one::<i64>("SELECT snowflake_set_mark(1, force => true)") > mark);
    for _ in 0..2 {
        assert!(session.lead().abs() < 1.0);
        thread::sleep(Duration::from_millis(1_100));
    }
}

#[test]
fn setting_the_mark_under_load_never_lets_an_id_come_again() {
    let mut chance = Chance::of("repair_load");
    let mut server = Cluster::builder("repair_load").set("fsync", "on").clock("+0").start();
    Load::prepare(&server);
    let load = Load::start(&server, 6, Ask::ALL, "");
    for round in 0..4 {
        let mut session = server.session();
        for _ in 0..10 {
            thread::sleep(chance.millis(100));
            // Above what others draw until it is done; below the mark or above.
            let ahead = chance.between(400, 3_000);
            let set = format!(
                "SELECT snowflake_set_mark(snowflake_max_id(snowflake_timestamp(snowflake_nextval())
                                                            + {ahead} * interval '1 ms'), force => true)"
            );
            session.one::<i64>(&set);
        }
        drop(session);
        server.stop(Stop::Immediate);
        server.set_clock(&format!("{:+.3}", -f64::from(round) - chance.between(0, 1_500) as f64 / 1e3));
        server.start();
    }
    thread::sleep(Duration::from_millis(300));
    load.finish().check(1_000).unwrap();
}

#[test]
fn a_mark_that_is_set_right_after_the_first_start_waits_for_its_place() {
    let mut server =
        Cluster::builder("set_early").unset("snowflake_pg.worker_id").set("max_prepared_transactions", "1").start();
    // Outlives the restart, and keeps the background worker from making the origin.
    let hold = "BEGIN; LOCK TABLE pg_replication_origin IN EXCLUSIVE MODE; PREPARE TRANSACTION 'slow'";
    server.session().batch_execute(hold).expect("a superuser may");
    server.set("snowflake_pg.worker_id", "1");
    server.restart(Stop::Fast);
    let (mut session, mut watcher) = (server.connect(), server.connect());
    let pid: i32 = session.one("SELECT pg_backend_pid()");
    let mark: i64 = session.one("SELECT snowflake_max_id(now() + interval '1 hour')");
    let setting = thread::spawn(move || session.code(&format!("SELECT snowflake_set_mark({mark})")));
    let shown = format!("SELECT coalesce(max(wait_event_type), '') FROM pg_stat_activity WHERE pid = {pid}");
    let waits = within(Duration::from_secs(10), || watcher.one::<String>(&shown) == "Extension");
    watcher.batch_execute("ROLLBACK PREPARED 'slow'").expect("a superuser may");
    assert_eq!(setting.join().expect("a thread that ends"), None);
    assert!(waits, "it has not waited");
    assert!(watcher.one::<i64>("SELECT snowflake_nextval()") >= mark);
}
