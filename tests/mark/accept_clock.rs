//! `snowflake_accept_clock()`, and the repair of a mark that a clock far ahead has raised.

use std::thread;
use std::time::Duration;

use cluster::{Answer, Ask, Cluster, Load, Stop, check_increasing, check_unique, sqlstate, within};

const AHEAD: &str = "the high-water mark is more than a day ahead of the clock";

/// The longest time until a changed clock is noticed, or until the reservation is used up.
const NOTICED: Duration = Duration::from_secs(12);

const TWO_YEARS: &str = "+63072000";

#[test]
fn a_jump_is_followed_once_it_is_accepted() {
    let (server, mut session) = Cluster::builder("repair_jump").clock("+0").start_session();
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
    assert!(server.log().contains("snowflake_pg: clock time "), "{}", server.log());
    // There is no jump to accept, so generator time does not move.
    assert!(session.one::<f64>("SELECT extract(epoch FROM snowflake_accept_clock())::float8") < 1.0);
    // A clock beyond the layout: the default layout ends in 2080.
    server.set_clock("+2500000000");
    let [code, message, detail, hint] = session.error("SELECT snowflake_accept_clock()");
    assert!(
        code == "55000" && message.contains("which is outside the range of layout \"41:10:12\""),
        "{code} {message}"
    );
    assert!(detail.contains("not including, 2080-") && hint == "Correct the server's clock.", "{detail} {hint}");
}

#[test]
fn an_accepted_clock_ends_the_refusal_after_a_step_back() {
    let (server, mut session) =
        Cluster::builder("repair_error").set("snowflake_pg.on_clock_regression", "error").clock("+0").start_session();
    let mut ids = session.batch(5000);
    server.set_clock("-300");
    let mut refused = || match session.query("SELECT snowflake_nextval_batch(100)", &[]) {
        Ok(rows) => {
            ids.extend(rows.iter().map(|row| row.get::<_, i64>(0)));
            None
        }
        Err(error) => Some(sqlstate(&error).0),
    };
    assert!(within(NOTICED, || refused().as_deref() == Some("55000")), "not refused:\n{}", server.log());
    // IDs do not go back with the clock. They lead it, and none is issued again.
    let moved: f64 = session.one("SELECT extract(epoch FROM snowflake_accept_clock())::float8");
    assert_eq!(moved, 0.0);
    assert!(server.log().contains("The time in new IDs moved forward by 0.000 s."), "{}", server.log());
    let lead = session.lead();
    assert!((290.0..301.0).contains(&lead), "{lead}");
    thread::sleep(Duration::from_millis(1_200));
    ids.extend(session.batch(5000));
    check_increasing(&ids).unwrap();
}

#[test]
fn a_mark_poisoned_by_a_clock_far_ahead_is_lowered_to_the_ids_that_are() {
    let (mut server, mut session) = Cluster::builder("repair_poison").clock("+0").start_session();
    session.run("CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), n int)");
    let mut ids: Vec<i64> = session.all("INSERT INTO orders (n) SELECT generate_series(1, 1000) RETURNING id");
    server.restart_at(Stop::Immediate, TWO_YEARS);
    let poisoned: i64 = server.session().one("SELECT snowflake_nextval()");
    server.restart_at(Stop::Immediate, "+0");
    let mut session = server.session();
    assert_eq!(session.code("SELECT snowflake_nextval()").as_deref(), Some("55000"));
    thread::sleep(Duration::from_millis(50));
    // Refused: a mark that is too low for the IDs in the table, and any lower mark without a table.
    let highest = ids.iter().copied().max().unwrap();
    assert_eq!(session.code(&format!("SELECT snowflake_set_mark({highest}, 'orders')")).as_deref(), Some("55000"));
    let [code, message, _, hint] = session.error("SELECT snowflake_set_mark(snowflake_max_id(now()))");
    assert!(code == "55000" && message.contains("is below the high-water mark, which is"), "{code} {message}");
    assert!(hint.starts_with("Pass a higher mark. To lower the mark on purpose, check"), "{hint}");
    assert!(hint.contains("force => true"), "{hint}");
    let before: i64 = session.one("SELECT snowflake_set_mark(snowflake_max_id(now()), 'orders')");
    assert!(before > poisoned);
    assert!(server.log().contains("snowflake_pg: the high-water mark was set to "), "{}", server.log());
    // Issuing begins at once, at the correct time, and not below the existing IDs, also after a crash.
    assert!(session.lead().abs() < 1.0);
    ids.extend(session.all::<i64>("INSERT INTO orders (n) SELECT generate_series(1, 1000) RETURNING id"));
    server.restart_at(Stop::Immediate, "-2");
    ids.extend(server.session().batch(5000));
    check_unique(&mut ids).unwrap();
}

/// A jump that was accepted by mistake, from the first WARNING to the end of the repair.
#[test]
fn a_jump_that_was_accepted_by_mistake_can_be_undone() {
    let mut server = Cluster::builder("repair_mistake").set("fsync", "on").clock("+0").start();
    Load::prepare(&server);
    let mut session = server.session();
    session.lead();
    let load = Load::start(&server, 4, Ask::ALL, "");
    server.set_clock(TWO_YEARS);
    let warning = "WARNING:  snowflake_pg: the clock was set forward by 63072";
    assert!(within(NOTICED, || server.log().contains(warning)), "{}", server.log());
    // The clock stays accepted although the transaction is rolled back.
    session.run("BEGIN; SELECT snowflake_accept_clock(); ROLLBACK");
    assert!(session.lead().abs() < 1.0);
    thread::sleep(Duration::from_millis(300));
    let log = server.log();
    assert_eq!((log.matches(warning).count(), log.matches(" was accepted\n").count()), (1, 1), "{log}");
    assert!(log.lines().any(|line| line.contains("The wall clock has jumped once since 20")), "{log}");
    // The same clock, a second behind.
    server.restart_at(Stop::Immediate, "+63071999");
    thread::sleep(Duration::from_millis(500));
    let mut history = load.finish();
    history.check(1_000).unwrap();

    // The correct clock, so that there is nothing to accept.
    server.restart_at(Stop::Immediate, "+0");
    let mut session = server.session();
    for sql in ["SELECT snowflake_nextval()", "SELECT snowflake_accept_clock()"] {
        assert_eq!(session.refusal(sql), ("55000".into(), AHEAD.into()), "{sql}");
    }
    session.run("CREATE VIEW every_id AS SELECT id FROM load_rows");
    let set = "SELECT snowflake_set_mark(snowflake_max_id(now()), 'every_id')";
    let (code, message) = session.refusal(set);
    assert!(
        code == "55000" && message.contains("is not above every ID issued by this server in \"public.every_id\""),
        "{code} {message}"
    );
    session.run("DELETE FROM load_rows WHERE id > snowflake_max_id(now())");
    // No row is from the future.
    session.run(set);
    let load = Load::start(&server, 4, Ask::ALL, "");
    assert!(session.lead().abs() < 1.0);
    thread::sleep(Duration::from_millis(300));
    server.restart_at(Stop::Immediate, "-2");
    thread::sleep(Duration::from_millis(300));
    history.merge(load.finish());
    history.check(2_000).unwrap();
}
