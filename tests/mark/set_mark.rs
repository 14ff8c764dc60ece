//! `snowflake_set_mark()`: the roles that can call it, the marks that it accepts, and that no ID below the mark is issued
//! afterwards.

use std::thread;
use std::time::Duration;

use cluster::{
    Answer, Ask, Chance, Client, Cluster, Load, Stop, assert_caught, check_unique, ensure, sqlstate, within,
};

#[test]
fn only_superusers_and_whom_they_allow_may_repair() {
    let (server, mut admin) = Cluster::builder("repair_rights").start_session();
    admin.run(
        "CREATE ROLE clerk LOGIN; CREATE TABLE closed (id bigint); CREATE TABLE open (id bigint);
         GRANT ALL ON open TO clerk",
    );
    let mut clerk = server.connect_as("clerk");
    let mark = clerk.one::<i64>("SELECT snowflake_nextval()");
    for function in ["snowflake_accept_clock", "snowflake_set_mark"] {
        let argument = if function == "snowflake_set_mark" { "1" } else { "" };
        let refused = clerk.refusal(&format!("SELECT {function}({argument})"));
        assert_eq!(refused, ("42501".into(), format!("permission denied for function {function}")));
    }
    admin.run("GRANT EXECUTE ON FUNCTION snowflake_accept_clock() TO clerk");
    assert_eq!(clerk.code("SELECT snowflake_accept_clock()"), None);
    // A role that can set the mark also needs privileges on the table.
    let grant = "GRANT EXECUTE ON FUNCTION snowflake_set_mark(bigint, regclass, text, boolean) TO clerk";
    admin.run(grant);
    let set = |table: &str| format!("SELECT snowflake_set_mark({mark} + 1, '{table}')");
    assert_eq!(clerk.refusal(&set("closed")), ("42501".into(), "permission denied for table closed".into()));
    assert!(server.shown_mark() > mark + 1);
    assert_eq!(clerk.code(&set("open")), None);
    assert_eq!(server.shown_mark(), mark + 1);
}

#[test]
fn a_server_without_a_number_has_nothing_to_repair() {
    let (_server, mut session) = Cluster::builder("repair_numberless").unset("snowflake_pg.worker_id").start_session();
    for function in ["snowflake_accept_clock()", "snowflake_set_mark(1, force => true)", "snowflake_set_mark(NULL)"] {
        let refused = session.refusal(&format!("SELECT {function}"));
        assert_eq!(refused, ("55000".into(), "parameter \"snowflake_pg.worker_id\" is not set".into()), "{function}");
    }
}

/// Sets the mark this many milliseconds from the last issued ID, and ends the server before the next draw. When the function has
/// returned, the mark must be on disk, and no ID below it can be issued.
fn check_set(name: &str, shift: i64) -> Result<(), String> {
    let mut server = Cluster::builder(name).set("fsync", "on").set("wal_writer_delay", "10s").clock("+0").start();
    Load::prepare(&server);
    let load = Load::start(&server, 4, Ask::READING, "");
    thread::sleep(Duration::from_millis(800));
    let history = load.finish();
    history.check(1_000)?;
    let mut ids = history.ids();
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
    server.restart_at(Stop::Immediate, "-3600");
    // Draws without gaps, so that any ID that was issued there before comes again.
    let drawn: Vec<i64> = server.connect().batch(500_000);
    ensure!(drawn.iter().all(|id| *id >= mark), "IDs begin below the mark");
    ids.extend(drawn);
    check_unique(&mut ids)
}

#[test]
fn a_mark_that_was_set_is_where_the_next_start_begins() {
    // Half an hour up. Down, from the end of the window to just above the last ID.
    check_set("repair_up", 1_800_000).unwrap();
    check_set("repair_down", 0).unwrap();
}

#[test]
fn a_mark_forced_below_what_was_issued_is_caught() {
    assert_caught(check_set("repair_too_low", -400), "came twice");
}

#[test]
fn a_mark_out_of_range_is_refused() {
    let (_server, mut session) =
        Cluster::builder("repair_range").set("snowflake_pg.layout", "41:5:5:11").start_session();
    let ask = |session: &mut Client, arguments: &str| {
        let result = session.batch_execute(&format!("SELECT snowflake_set_mark({arguments})"));
        result.err().map(|error| sqlstate(&error))
    };
    for mark in ["0", "-1", "9223372036854775807"] {
        let (code, message, detail, hint) = ask(&mut session, mark).expect("refused");
        assert_eq!([code, message], ["22023".into(), format!("mark {mark} is out of range")]);
        assert_eq!(detail, "The mark must be from 1 to 4611686018427387903, the largest ID of layout \"41:5:5:11\".");
        assert_eq!(hint, "Pass the highest ID that might have been issued, plus 1.");
    }
    // No ID could be issued above it for a while.
    let (code, message, ..) = ask(&mut session, "snowflake_max_id(now() + interval '2 days')").expect("refused");
    assert_eq!(code, "22023");
    assert!(message.ends_with("is more than a day ahead of the clock"), "{message}");
    assert_eq!(session.one::<Option<i64>>("SELECT snowflake_set_mark(NULL)"), None);
    // A higher mark needs no force, and IDs begin there.
    let (mark, before): (i64, i64) = {
        let row = session
            .query_one("SELECT m, snowflake_set_mark(m) FROM snowflake_max_id(now() + interval '1 hour') AS m", &[])
            .expect("upwards");
        (row.get(0), row.get(1))
    };
    assert!(before < mark);
    assert!(session.one::<i64>("SELECT snowflake_nextval()") >= mark);
    // The mark is below every ID, so IDs begin at the clock.
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
            // Above the IDs that others draw until the call returns, and below or above the mark.
            let ahead = chance.between(400, 3_000);
            let set = format!(
                "SELECT snowflake_set_mark(snowflake_max_id(snowflake_timestamp(snowflake_nextval())
                                                            + {ahead} * interval '1 ms'), force => true)"
            );
            session.one::<i64>(&set);
        }
        drop(session);
        server
            .restart_at(Stop::Immediate, &format!("{:+.3}", -f64::from(round) - chance.between(0, 1_500) as f64 / 1e3));
    }
    thread::sleep(Duration::from_millis(300));
    load.finish().check(1_000).unwrap();
}

#[test]
fn a_mark_that_is_set_right_after_the_first_start_waits_for_its_place() {
    let mut server =
        Cluster::builder("set_early").unset("snowflake_pg.worker_id").set("max_prepared_transactions", "1").start();
    // The lock outlives the restart and prevents the background worker from making the origin.
    let hold = "BEGIN; LOCK TABLE pg_replication_origin IN EXCLUSIVE MODE; PREPARE TRANSACTION 'slow'";
    server.session().run(hold);
    server.set("snowflake_pg.worker_id", "1");
    server.restart(Stop::Fast);
    let (mut session, mut watcher) = (server.connect(), server.connect());
    let pid: i32 = session.one("SELECT pg_backend_pid()");
    let mark: i64 = session.one("SELECT snowflake_max_id(now() + interval '1 hour')");
    let setting = thread::spawn(move || session.code(&format!("SELECT snowflake_set_mark({mark})")));
    let shown = format!("SELECT coalesce(max(wait_event_type), '') FROM pg_stat_activity WHERE pid = {pid}");
    let waits = within(Duration::from_secs(10), || watcher.one::<String>(&shown) == "Extension");
    watcher.run("ROLLBACK PREPARED 'slow'");
    assert_eq!(setting.join().expect("a thread that ends"), None);
    assert!(waits, "it has not waited");
    assert!(watcher.one::<i64>("SELECT snowflake_nextval()") >= mark);
}
