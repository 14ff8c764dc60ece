//! Where the mark is stored: no ID is issued without a place for the mark, and `pg_resetwal` keeps the mark of the last
//! checkpoint.

use std::thread;
use std::time::Duration;

use cluster::{
    Answer, Builder, Client, Cluster, Host, SPARSE_PER_SECOND, Stop, assert_caught, assert_caught_by_chance,
    check_unique, draw_above, ensure, origins_setting, output, sqlstate, within,
};

/// The longest time until the reservation is used up.
const DRY: Duration = Duration::from_secs(12);

/// The error that a session gets when the reservation is used up. A session that tries to extend it in advance gets the error
/// earlier.
fn refusal(session: &mut Client) -> [String; 4] {
    let mut refused = || session.code("SELECT snowflake_nextval()").is_some();
    assert!(within(DRY, || (0..3).all(|_| refused())), "it goes on");
    session.error("SELECT snowflake_nextval()")
}

#[test]
fn without_its_origin_issuing_stops_with_a_hint() {
    let (mut server, mut session) = Cluster::builder("dropped").start_session();
    let last: i64 = session.one("SELECT snowflake_nextval()");
    session.run("SELECT pg_replication_origin_drop('snowflake_pg')");
    let [code, message, detail, hint] = refusal(&mut session);
    assert_eq!([code, message], ["55000", "the high-water mark is missing"]);
    assert_eq!(detail, "Replication origin \"snowflake_pg\" was dropped.");
    assert!(hint.contains("restart the server"), "{hint}");
    server.restart(Stop::Fast);
    assert!(server.log().contains("created replication origin \"snowflake_pg\" to store the high-water mark"));
    let mut session = server.session();
    assert!(session.one::<i64>("SELECT snowflake_nextval()") > last);

    // The origin without its progress, as after a drop that was rolled back.
    session.run("BEGIN; SELECT pg_replication_origin_drop('snowflake_pg'); ROLLBACK");
    let [code, _, detail, hint] = refusal(&mut session);
    assert_eq!(
        [code, detail],
        ["55000", "Replication origin \"snowflake_pg\" exists, but its progress has been lost."]
    );
    assert!(hint.contains("snowflake_set_mark()"), "{hint}");
    server.restart(Stop::Fast);
    assert!(server.log().contains("WARNING:  snowflake_pg: the high-water mark is missing"), "{}", server.log());
    let mut session = server.session();
    assert_eq!(session.code("SELECT snowflake_nextval()").as_deref(), Some("55000"));
    let before: Option<i64> = session.one("SELECT snowflake_set_mark(snowflake_max_id(now()) + 1)");
    assert_eq!(before, None);
    assert!(session.one::<i64>("SELECT snowflake_nextval()") > last);

    // The mark is set back by hand.
    let by_hand = "SELECT pg_replication_origin_advance('snowflake_pg', '0/1')";
    session.run(by_hand);
    let [code, message, _, hint] = refusal(&mut session);
    assert_eq!([code, message], ["55000", "the high-water mark was set back"]);
    assert!(hint.contains("snowflake_set_mark()"), "{hint}");
    session.run("SELECT snowflake_set_mark(snowflake_max_id(now()) + 1)");
    assert!(session.one::<i64>("SELECT snowflake_nextval()") > last);
}

#[test]
fn without_a_free_replication_state_there_is_no_mark_and_no_id() {
    let setting = origins_setting();
    let mut server = Cluster::builder("no_state").unset("snowflake_pg.worker_id").set(setting, "1").start();
    let other = "SELECT pg_replication_origin_create('other'); SELECT pg_replication_origin_advance('other', '0/1')";
    server.session().run(other);
    server.set("snowflake_pg.worker_id", "1");
    server.restart(Stop::Fast);
    let mut session = server.session();
    let [code, message, _, hint] = session.error("SELECT snowflake_nextval()");
    assert_eq!([code, message], ["53400", "no free replication state for the high-water mark"]);
    assert!(hint.starts_with(&format!("Increase \"{setting}\"")), "{hint}");
    server.set(setting, "2");
    server.restart(Stop::Fast);
    assert!(server.session().one::<i64>("SELECT snowflake_nextval()") > 0);

    server.session().run("SELECT pg_replication_origin_drop('other')");
    server.session().run("SELECT pg_replication_origin_drop('snowflake_pg')");
    server.stop(Stop::Fast);
    server.set(setting, "0");
    server.set("wal_level", "minimal");
    server.set("max_wal_senders", "0");
    let log = server.try_start().expect_err("there is no place for a mark");
    assert!(log.contains(&format!("FATAL:  cannot store the high-water mark while \"{setting}\" is 0")), "{log}");
    assert!(log.contains(&format!("HINT:  Set \"{setting}\" to 1 or more")), "{log}");
    // A server that only decodes needs no mark.
    server.unset("snowflake_pg.worker_id");
    server.start();
}

#[test]
fn read_only_transactions_and_parallel_workers_extend_too() {
    let (server, mut session) = Cluster::builder("read_only").set("log_min_messages", "debug1").start_session();
    session.run("CREATE TABLE seeds AS SELECT FROM generate_series(1, 5000)");
    let extensions = || server.log().matches("extended the reservation").count();
    session.prefer_parallel(2);
    session.one::<i64>("SELECT snowflake_nextval()");
    for sql in ["BEGIN READ ONLY; SELECT snowflake_nextval(); COMMIT", "SELECT snowflake_nextval() FROM seeds"] {
        thread::sleep(Duration::from_millis(2_500));
        let before = extensions();
        session.run(sql);
        assert!(extensions() > before, "{sql}");
    }
    let plan = session.plan("(ANALYZE) SELECT snowflake_nextval() FROM seeds");
    assert!(plan.contains("Workers Launched: 2"), "{plan}");
}

/// A superuser's session sets up the origin for itself while another session draws. Checks the error that the other session gets.
fn check_origin_in_use(builder: Builder) -> Result<(), String> {
    let (server, mut session) = builder.start_session();
    let mut holder = server.connect();
    session.one::<i64>("SELECT snowflake_nextval()");
    holder.run("SELECT pg_replication_origin_session_setup('snowflake_pg')");
    // The reservation is issued to its end.
    let mut refused = None;
    let ended = within(DRY, || {
        refused = session.query_one("SELECT snowflake_nextval()", &[]).err();
        refused.is_some()
    });
    ensure!(ended, "IDs are issued for longer than any window");
    let used_up: bool =
        session.one("SELECT snowflake_timestamp(mark) - clock_timestamp() < '20 ms' FROM snowflake_status");
    let (code, message, detail, hint) = sqlstate(&refused.expect("it has ended"));
    ensure!(used_up, "a session that had its ID was refused: {code} {message}");
    ensure!(code == "55006" && message == "the high-water mark is in use by a session", "{code} {message}");
    ensure!(detail.contains("pg_replication_origin_session_setup('snowflake_pg')"), "{detail}");
    ensure!(hint.contains("pg_replication_origin_session_reset()"), "{hint}");
    let status: Vec<String> = session.all("SELECT state || ': ' || problem || ' ' || hint FROM snowflake_status");
    ensure!(status == [format!("refused: {message} {hint}")], "the status says {status:?}");
    // The hint works.
    holder.run("SELECT pg_replication_origin_session_reset()");
    ensure!(session.code("SELECT snowflake_nextval()").is_none(), "issuing does not go on");
    let state: String = session.one("SELECT state FROM snowflake_status");
    ensure!(state == "issuing", "the status says {state}");
    // The error that was caught has left no lock.
    holder.run("SELECT pg_replication_origin_session_setup('snowflake_pg')");
    Ok(())
}

#[test]
fn an_origin_that_is_in_use_is_met_by_those_who_get_no_id_and_shown() {
    check_origin_in_use(Cluster::builder("origin_in_use")).unwrap();
}

#[test]
fn a_session_that_has_its_id_and_is_refused_is_caught() {
    let check = || check_origin_in_use(Cluster::builder("origin_raised").fault("RenewalRaises"));
    assert_caught_by_chance(check, "had its ID");
}

/// Ends a server, resets its WAL, and starts it with the clock behind. Returns the mark of the last checkpoint before the server was
/// ended, the last mark, and the mark afterwards, and the IDs issued before and after.
fn reset_wal(name: &str, end: Stop) -> ([i64; 3], Vec<i64>) {
    let (mut server, mut session) = Cluster::builder(name).sparse().set("fsync", "on").start_session();
    let mut ids = session.batch(SPARSE_PER_SECOND);
    session.run("CHECKPOINT");
    let checkpointed = server.shown_mark();
    ids.extend(draw_above(&mut session, checkpointed));
    let last = server.shown_mark();
    drop(session);
    server.stop(end);
    output(Host::get().program("pg_resetwal").args(["--force", "-D"]).arg(server.dir()));
    server.set_clock("-60");
    server.start();
    let after = server.shown_mark();
    ids.extend(draw_above(&mut server.connect(), checkpointed));
    ([checkpointed, last, after], ids)
}

#[test]
fn pg_resetwal_after_a_clean_stop_keeps_the_mark() {
    let ([checkpointed, last, after], mut ids) = reset_wal("storage_reset", Stop::Fast);
    assert!(checkpointed < last && last == after, "{checkpointed}, {last}, {after}");
    check_unique(&mut ids).unwrap();
}

#[test]
fn pg_resetwal_after_a_crash_leaves_the_mark_of_the_last_checkpoint() {
    let ([checkpointed, last, after], mut ids) = reset_wal("storage_reset_crash", Stop::Immediate);
    assert!(checkpointed < last && checkpointed == after, "{checkpointed}, {last}, {after}");
    // The documentation does not promise unique IDs in this case.
    assert_caught(check_unique(&mut ids), "came twice");
}
