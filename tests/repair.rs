//! The two functions that repair meet what is found on a bad day: tables of every kind, sessions that go on, standbys,
//! restarts at the wrong moment. What they say is shown in repair_functions.rs.

use std::thread;
use std::time::{Duration, Instant};

use cluster::{
    Answer, Ask, Cluster, Load, Stop, assert_caught, check_increasing, check_ledger, ensure, sqlstate, within,
};

const AHEAD: &str = "the high-water mark is more than a day ahead of the clock";

/// Longest time in which a changed clock is noticed, or what is reserved is used up.
const NOTICED: Duration = Duration::from_secs(12);

const TWO_YEARS: &str = "+63072000";

/// Sets the mark so many milliseconds from the last ID that was issued, and ends the server before anybody draws: what was
/// returned from must be on disk, and nothing may begin below it.
fn check_set(name: &str, shift: i64) -> Result<(), String> {
    let mut server = Cluster::builder(name).set("fsync", "on").set("wal_writer_delay", "10s").clock("+0").start();
    Load::prepare(&server);
    let load = Load::start(&server, 4, Ask::READING, "");
    thread::sleep(Duration::from_millis(800));
    let ledger = load.finish();
    ledger.check(1_000)?;
    let mut ids = ledger.ids();
    let highest = *ids.iter().max().expect("IDs were drawn");
    let mut session = server.session();
    let mark: i64 = session
        .one(&format!("SELECT snowflake_max_id(snowflake_timestamp({highest}) + {shift} * interval '1 ms') + 1"));
    let known = server.shown_mark();
    let before: i64 = session.one(&format!("SELECT snowflake_set_mark({mark}, force => true)"));
    ensure!(before == known, "the mark was {known}, it returns {before}");
    ensure!(server.shown_mark() == mark, "the mark is {}, not {mark}", server.shown_mark());
    let line = format!("LOG:  snowflake_pg: the high-water mark was set to {mark} by force");
    ensure!(server.log().contains(&line), "the log does not say so: {}", server.log());
    server.stop(Stop::Immediate);
    server.set_clock("-3600");
    server.start();
    // Without gaps: whatever was issued there before comes again.
    let drawn: Vec<i64> = server.connect().batch(50_000);
    ensure!(drawn.iter().all(|id| *id >= mark), "IDs begin below the mark");
    ids.extend(drawn);
    check_ledger(&mut ids)
}

#[test]
fn a_mark_that_was_set_is_where_the_next_start_begins() {
    // Half an hour up; and down, from the end of the window to right above the last ID.
    check_set("repair_up", 1_800_000).unwrap();
    check_set("repair_down", 0).unwrap();
}

#[test]
fn a_mark_forced_below_what_was_issued_is_caught() {
    assert_caught(check_set("repair_too_low", -400), "came twice");
}

#[test]
fn whom_a_superuser_allows_needs_the_tables_rights_too() {
    let server = Cluster::builder("repair_clerk").start();
    let mut admin = server.session();
    admin
        .batch_execute(
            "CREATE ROLE clerk LOGIN; CREATE TABLE closed (id bigint); CREATE TABLE open (id bigint);
             GRANT ALL ON open TO clerk;
             GRANT EXECUTE ON FUNCTION snowflake_set_mark(bigint, regclass, text, boolean) TO clerk",
        )
        .expect("a superuser may");
    let mark: i64 = admin.one("SELECT snowflake_nextval()");
    let mut clerk = server.connect_as("clerk");
    let set = |table: &str| format!("SELECT snowflake_set_mark({mark} + 1, '{table}')");
    assert_eq!(clerk.refusal(&set("closed")), ("42501".into(), "permission denied for table closed".into()));
    assert!(server.shown_mark() > mark + 1);
    assert_eq!(clerk.code(&set("open")), None);
    assert_eq!(server.shown_mark(), mark + 1);
    let accept = "SELECT snowflake_accept_clock()";
    assert_eq!(clerk.refusal(accept), ("42501".into(), "permission denied for function snowflake_accept_clock".into()));
}

#[test]
fn ids_are_found_in_tables_of_every_kind() {
    let server = Cluster::builder("repair_kinds").start();
    let mut session = server.session();
    // Where, by which column, and where the ID lies.
    let kinds = [
        (
            "parts",
            "id",
            "parts",
            "CREATE TABLE parts (id bigint) PARTITION BY RANGE (id);
                                  CREATE TABLE part PARTITION OF parts DEFAULT",
        ),
        ("parent", "id", "child", "CREATE TABLE parent (id bigint); CREATE TABLE child () INHERITS (parent)"),
        (
            "\"Odd; \"\"Name\"",
            "Row \"Id",
            "\"Odd; \"\"Name\"",
            "CREATE TABLE \"Odd; \"\"Name\" (\"Row \"\"Id\" bigint)",
        ),
        ("far.away", "id", "far.away", "CREATE SCHEMA far; CREATE TABLE far.away (id bigint)"),
        ("typed", "id", "typed", "CREATE DOMAIN key AS bigint; CREATE TABLE typed (id key)"),
        (
            "every_id",
            "key",
            "deep",
            "CREATE TABLE deep (n bigint); CREATE VIEW shallow AS SELECT n FROM deep;
                                     CREATE VIEW every_id AS SELECT id AS key FROM typed UNION ALL
                                     (SELECT n FROM shallow) UNION ALL SELECT id FROM far.away",
        ),
    ];
    // What a name in these queries could be taken for, if it were not PostgreSQL's own.
    let trap = "CREATE SCHEMA trap;
        CREATE FUNCTION trap.never(bigint, bigint) RETURNS boolean LANGUAGE sql RETURN false;
        CREATE FUNCTION trap.none(bigint, bigint) RETURNS bigint LANGUAGE sql RETURN 0;
        CREATE OPERATOR trap.>= (FUNCTION = trap.never, LEFTARG = bigint, RIGHTARG = bigint);
        CREATE OPERATOR trap.= (FUNCTION = trap.never, LEFTARG = bigint, RIGHTARG = bigint);
        CREATE OPERATOR trap.& (FUNCTION = trap.none, LEFTARG = bigint, RIGHTARG = bigint);
        CREATE AGGREGATE trap.max (bigint) (SFUNC = trap.none, STYPE = bigint);
        SET search_path = trap, public, pg_catalog";
    for (_, _, _, made) in kinds {
        session.batch_execute(made).unwrap_or_else(|e| panic!("{made}: {e}"));
    }
    session.batch_execute(trap).expect("a superuser may");
    for (table, column, holder, _) in kinds {
        let id: i64 = session.one("SELECT snowflake_nextval()");
        session.batch_execute(&format!("INSERT INTO {holder} VALUES ({id})")).expect("a row");
        let set = |mark: i64| format!("SELECT snowflake_set_mark({mark}, $t${table}$t$, $c${column}$c$)");
        let (code, message, detail, hint) = sqlstate(&session.batch_execute(&set(id)).expect_err("refused"));
        let name = if table.contains('.') { table.into() } else { format!("public.{table}") };
        assert_eq!((code.as_str(), message), ("55000", format!("mark {id} is not above the IDs of {name}")));
        assert_eq!(detail, format!("The highest ID of this server in it is {id}, and would be issued again."));
        assert!(hint.contains("force => true"), "{hint}");
        assert_eq!(session.code(&set(id + 1)), None, "{table}");
        assert_eq!(server.shown_mark(), id + 1);
    }
    // The trap does work.
    assert_eq!(session.one::<Option<i64>>("SELECT max(n) FROM deep WHERE n >= 1::bigint"), None);
    // What cannot be looked at, or not be kept from changing, is refused, and the mark stays.
    session
        .batch_execute(
            "CREATE TABLE n (id numeric); CREATE TABLE t (id text); CREATE SEQUENCE s;
             CREATE MATERIALIZED VIEW m AS SELECT id FROM typed",
        )
        .expect("a superuser may");
    let (mark, high) = (server.shown_mark(), session.one::<i64>("SELECT snowflake_nextval()"));
    assert!(mark < high && server.shown_mark() > high);
    let kept = server.shown_mark();
    for (arguments, code) in
        [("'n'", "42883"), ("'t'", "42883"), ("'s'", "42809"), ("'m'", "42809"), ("'typed', 'key'", "42703")]
    {
        let sql = format!("SELECT snowflake_set_mark({mark}, {arguments})");
        assert_eq!(session.code(&sql).as_deref(), Some(code), "{arguments}");
    }
    assert_eq!(server.shown_mark(), kept);
}

/// Whether the mark is above all IDs of a table `orders`, whatever `statements` were answered: the last of them sets it to
/// the ID of an earlier row.
fn check_kept(name: &str, statements: &[&str], user: &str) -> Result<(), String> {
    let server = Cluster::builder(name).start();
    let mut admin = server.session();
    admin
        .batch_execute(
            "CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
             INSERT INTO orders DEFAULT VALUES; CREATE ROLE clerk LOGIN; GRANT ALL ON orders TO clerk;
             GRANT EXECUTE ON FUNCTION snowflake_set_mark(bigint, regclass, text, boolean) TO clerk",
        )
        .expect("a superuser may");
    let mark: i64 = admin.one("SELECT id FROM orders");
    let mut session = server.connect_as(user);
    session.batch_execute("BEGIN").expect("a transaction");
    for sql in statements {
        let by = if sql.starts_with('@') { &mut admin } else { &mut session };
        by.batch_execute(sql.trim_start_matches('@')).unwrap_or_else(|e| panic!("{sql}: {e}"));
    }
    let _ = session.batch_execute(&format!("SELECT snowflake_set_mark({mark} + 1, 'orders')"));
    session.batch_execute("ROLLBACK").expect("a rollback");
    let (highest, known): (i64, i64) = (admin.one("SELECT max(id) FROM orders"), server.shown_mark());
    ensure!(known > highest, "the mark was lowered to {known}, and there is ID {highest}");
    Ok(())
}

const ANOTHER_ROW: &str = "@INSERT INTO orders DEFAULT VALUES";

#[test]
fn a_row_that_is_there_keeps_the_mark_up() {
    check_kept("repair_kept", &[ANOTHER_ROW], "postgres").unwrap();
    check_kept("repair_kept_clerk", &[ANOTHER_ROW], "clerk").unwrap();
}

#[test]
fn a_row_that_the_snapshot_does_not_show_keeps_the_mark_up() {
    let old_snapshot = ["SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "SELECT 1", ANOTHER_ROW];
    check_kept("repair_snapshot", &old_snapshot, "postgres").unwrap();
}

#[test]
fn a_row_whose_deletion_is_undone_keeps_the_mark_up() {
    check_kept("repair_deleted", &[ANOTHER_ROW, "DELETE FROM orders"], "postgres").unwrap();
}

#[test]
fn a_row_that_a_policy_hides_keeps_the_mark_up() {
    let hidden = ["@ALTER TABLE orders ENABLE ROW LEVEL SECURITY", ANOTHER_ROW];
    check_kept("repair_policy", &hidden, "clerk").unwrap();
}

#[test]
fn a_standby_and_a_server_without_a_number_have_nothing_to_repair() {
    let server = Cluster::builder("repair_primary").start();
    let last: i64 = server.session().one("SELECT snowflake_nextval()");
    let standby = server.standby(Cluster::builder("repair_standby"));
    let mut session = standby.connect();
    let functions = ["snowflake_accept_clock()", "snowflake_set_mark(1, force => true)", "snowflake_set_mark(NULL)"];
    for function in functions {
        let refused = session.refusal(&format!("SELECT {function}"));
        assert_eq!(refused, ("25006".into(), "cannot issue an ID during recovery".into()), "{function}");
    }
    drop(server);
    standby.promote();
    assert_eq!(session.code("SELECT snowflake_accept_clock()"), None);
    assert!(session.one::<i64>("SELECT snowflake_set_mark(snowflake_max_id(now() + interval '1 minute'))") > last);
    drop((session, standby));
    let numberless = Cluster::builder("repair_numberless").unset("snowflake_pg.worker_id").start();
    let mut session = numberless.session();
    for function in functions {
        let refused = session.refusal(&format!("SELECT {function}"));
        assert_eq!(refused, ("55000".into(), "parameter \"snowflake_pg.worker_id\" is not set".into()), "{function}");
    }
}

#[test]
fn while_the_mark_waits_for_a_table_others_go_on() {
    let server = Cluster::builder("repair_waits").start();
    let mut session = server.session();
    session.batch_execute("CREATE TABLE orders (id bigint)").expect("a superuser may");
    let mut ids = session.batch(5000);
    let mut writer = server.connect();
    writer.batch_execute("BEGIN; INSERT INTO orders VALUES (snowflake_nextval())").expect("a transaction");
    let mut admin = server.connect();
    let cancel = admin.cancel_token();
    let waiting = thread::spawn(move || {
        let refused = admin.refusal("SELECT snowflake_set_mark(1, 'orders')").0;
        (refused, admin)
    });
    // Longer than a window: the mark is raised meanwhile.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(1_500) {
        let asked = Instant::now();
        ids.push(session.one("SELECT snowflake_nextval()"));
        assert!(asked.elapsed() < Duration::from_secs(1), "an ID took {:?}", asked.elapsed());
        thread::sleep(Duration::from_millis(5));
    }
    assert!(!waiting.is_finished(), "the row that is not committed is not waited for");
    cancel.cancel_query(postgres::NoTls).expect("a cancel can be sent");
    let (code, mut admin) = waiting.join().expect("a thread that ends");
    assert_eq!(code, "57014");
    assert!(server.shown_mark() > *ids.last().expect("just drawn"));
    // Nothing is left of it: the row is written, and then found.
    writer.batch_execute("COMMIT").expect("a commit");
    assert_eq!(admin.refusal("SELECT snowflake_set_mark(1, 'orders')").0, "55000");
    ids.extend(session.batch(5000));
    check_increasing(&ids).unwrap();
}

#[test]
fn an_accepted_clock_ends_the_refusal_after_a_step_back() {
    let server = Cluster::builder("repair_error").set("snowflake_pg.on_clock_regression", "error").clock("+0").start();
    let mut session = server.session();
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
    // IDs do not go back with the clock: they lead it, and nothing comes again.
    let moved: f64 = session.one("SELECT extract(epoch FROM snowflake_accept_clock())::float8");
    assert_eq!(moved, 0.0);
    assert!(server.log().contains("Generator time moved forward by 0.000 s."), "{}", server.log());
    let lead = session.lead();
    assert!((290.0..301.0).contains(&lead), "{lead}");
    thread::sleep(Duration::from_millis(1_200));
    ids.extend(session.batch(5000));
    check_increasing(&ids).unwrap();
}

/// A jump that was accepted and should not have been, from the first WARNING to the day when all is well.
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
    // What a transaction that is rolled back has accepted stays accepted.
    session.batch_execute("BEGIN; SELECT snowflake_accept_clock(); ROLLBACK").expect("a superuser may");
    assert!(session.lead().abs() < 1.0);
    thread::sleep(Duration::from_millis(300));
    let log = server.log();
    assert_eq!((log.matches(warning).count(), log.matches("the clock was accepted at ").count()), (1, 1), "{log}");
    assert!(log.contains("Clock jump 1 since 20"), "{log}");
    // The same clock, a second behind.
    server.stop(Stop::Immediate);
    server.set_clock("+63071999");
    server.start();
    thread::sleep(Duration::from_millis(500));
    let mut ledger = load.finish();
    ledger.check(1_000).unwrap();

    // The right clock: there is nothing to accept.
    server.stop(Stop::Immediate);
    server.set_clock("+0");
    server.start();
    let mut session = server.session();
    for sql in ["SELECT snowflake_nextval()", "SELECT snowflake_accept_clock()"] {
        assert_eq!(session.refusal(sql), ("55000".into(), AHEAD.into()), "{sql}");
    }
    session.batch_execute("CREATE VIEW every_id AS SELECT id FROM ledger_rows").expect("a superuser may");
    let set = "SELECT snowflake_set_mark(snowflake_max_id(now()), 'every_id')";
    let (code, message) = session.refusal(set);
    assert!(code == "55000" && message.ends_with("is not above the IDs of public.every_id"), "{code} {message}");
    session.batch_execute("DELETE FROM ledger_rows WHERE id > snowflake_max_id(now())").expect("a superuser may");
    session.batch_execute(set).expect("no row is of the future");
    let load = Load::start(&server, 4, Ask::ALL, "");
    assert!(session.lead().abs() < 1.0);
    thread::sleep(Duration::from_millis(300));
    server.stop(Stop::Immediate);
    server.set_clock("-2");
    server.start();
    thread::sleep(Duration::from_millis(300));
    ledger.merge(load.finish());
    ledger.check(2_000).unwrap();
}
