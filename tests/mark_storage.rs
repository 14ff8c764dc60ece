//! Nothing but its own functions lowers the mark, and nothing is issued without one: point 5 of what must be true.

use std::thread;
use std::time::Duration;

use cluster::{
    Answer, Ask, Builder, Client, Cluster, Load, Stop, assert_caught, check_ledger, ensure, origins_setting, sqlstate,
    typed, within,
};

/// Longest time in which what is reserved is used up.
const DRY: Duration = Duration::from_secs(12);

/// Whatever is done to databases and extensions under load, the mark only rises, and a restart with the clock set back
/// repeats nothing. `meddle` is done last.
fn check_paths(builder: Builder, meddle: &str) -> Result<(), String> {
    let mut server = builder.set("fsync", "on").clock("+0").start();
    Load::prepare(&server);
    let mut session = server.session();
    session.batch_execute("CREATE DATABASE second").expect("a superuser may");
    let mut second = server.connect_to("second");
    second
        .batch_execute("CREATE EXTENSION snowflake_pg; CREATE TABLE t (id bigint DEFAULT snowflake_nextval())")
        .expect("a superuser may");
    let load = Load::start(&server, 4, Ask::ALL, "");
    let mut ids: Vec<i64> = Vec::new();
    let mut highest = server.shown_mark();
    for round in 0..6 {
        ids.extend(second.all::<i64>("INSERT INTO t DEFAULT VALUES RETURNING id"));
        for sql in ["TRUNCATE t RESTART IDENTITY", "VACUUM FULL t", "CHECKPOINT", "SELECT pg_reload_conf()"] {
            second.batch_execute(sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
        }
        ids.extend(second.batch(100));
        let again = "DROP EXTENSION snowflake_pg CASCADE; CREATE EXTENSION snowflake_pg;
                     ALTER TABLE t ALTER id SET DEFAULT snowflake_nextval()";
        second.batch_execute(again).expect("a superuser may");
        if round == 3 {
            drop(second);
            session.batch_execute("CREATE DATABASE copy TEMPLATE second").expect("nobody is connected to it");
            ids.extend(server.connect_to("copy").batch(100));
            restore(&server, "second", "restored");
            ids.extend(server.connect_to("restored").all::<i64>("INSERT INTO t DEFAULT VALUES RETURNING id"));
            second = server.connect_to("second");
        }
        let mark = server.shown_mark();
        ensure!(mark >= highest, "the mark fell from {highest} to {mark}");
        highest = mark;
    }
    session.batch_execute(meddle).expect("a superuser may");
    server.stop(Stop::Immediate);
    // The IDs of the last seconds would come again.
    server.set_clock("-4");
    server.start();
    thread::sleep(Duration::from_millis(3_500));
    let ledger = load.finish();
    ledger.check(1_000)?;
    ids.extend(ledger.ids());
    check_ledger(&mut ids)
}

/// `pg_dump` of one database into another of the same server.
fn restore(server: &Cluster, from: &str, to: &str) {
    server.connect().batch_execute(&format!("CREATE DATABASE {to}")).expect("a superuser may");
    let dump = server.program("pg_dump").arg(from).output().expect("pg_dump can be run");
    assert!(dump.status.success(), "{}", String::from_utf8_lossy(&dump.stderr));
    let mut psql = server.psql();
    psql.arg(to);
    typed(psql, &String::from_utf8_lossy(&dump.stdout)).expect("the dump can be restored");
}

#[test]
fn no_path_but_its_own_lowers_the_mark() {
    check_paths(Cluster::builder("paths"), "SELECT 1").unwrap();
}

#[test]
fn the_hole_that_remains_is_a_superuser_who_drops_the_origin_and_restarts() {
    let drop = "SELECT pg_replication_origin_drop('snowflake_pg')";
    assert_caught(check_paths(Cluster::builder("paths_hole"), drop), "came twice");
}

/// An extension that is made, used and rolled back leaves its IDs issued, and nothing else.
fn check_rollback(builder: Builder) -> Result<(), String> {
    let mut server = builder.clock("+0").start();
    let mut session = server.connect();
    let mut ids: Vec<i64> = Vec::new();
    let mut transaction = session.transaction().expect("a transaction");
    transaction.batch_execute("CREATE EXTENSION snowflake_pg").expect("a superuser may");
    for row in transaction.query("SELECT snowflake_nextval_batch(5000)", &[]).expect("IDs can be drawn") {
        ids.push(row.get(0));
    }
    transaction.rollback().expect("a rollback");
    let rows: i64 = session.one("SELECT count(*) FROM pg_replication_origin WHERE roname <> 'snowflake_pg'");
    let states: i64 = session.one("SELECT count(*) FROM pg_replication_origin_status");
    let nameless: i64 = session.one("SELECT count(*) FROM pg_replication_origin_status WHERE external_id IS NULL");
    ensure!((rows, nameless) == (0, 0) && states == 1, "{rows} other origins, {nameless} of {states} states nameless");
    // What CREATE SUBSCRIPTION would make.
    session.batch_execute("SELECT pg_replication_origin_create('next')").expect("a superuser may");
    let progress: Option<String> = session.one("SELECT pg_replication_origin_progress('next', false)::text");
    ensure!(progress.is_none(), "the next origin inherits {progress:?}");
    server.stop(Stop::Immediate);
    server.set_clock("-1");
    server.start();
    ids.extend(server.session().batch(5000));
    check_ledger(&mut ids)
}

#[test]
fn an_extension_that_is_rolled_back_leaves_nothing_to_inherit() {
    check_rollback(Cluster::builder("rollback")).unwrap();
}

#[test]
fn a_mark_made_by_a_user_is_caught() {
    assert_caught(check_rollback(Cluster::builder("rollback_fault").fault("MarkMadeByUser")), "nameless");
}

/// The error in which drawing ends once what is reserved is used up. Who tries to extend it in time meets the error earlier.
fn refusal(session: &mut Client) -> (String, String, String, String) {
    let mut refused = || session.code("SELECT snowflake_nextval()").is_some();
    assert!(within(DRY, || (0..3).all(|_| refused())), "it goes on");
    sqlstate(&session.batch_execute("SELECT snowflake_nextval()").expect_err("refused three times"))
}

#[test]
fn without_its_origin_issuing_stops_with_a_hint() {
    let mut server = Cluster::builder("dropped").start();
    let mut session = server.session();
    let last: i64 = session.one("SELECT snowflake_nextval()");
    session.batch_execute("SELECT pg_replication_origin_drop('snowflake_pg')").expect("a superuser may");
    let (code, message, detail, hint) = refusal(&mut session);
    assert_eq!((code.as_str(), message.as_str()), ("55000", "the high-water mark is missing"));
    assert_eq!(detail, "Replication origin \"snowflake_pg\" was dropped.");
    assert!(hint.contains("restart the server"), "{hint}");
    server.restart(Stop::Fast);
    assert!(server.log().contains("made replication origin \"snowflake_pg\" to keep the high-water mark"));
    let mut session = server.session();
    assert!(session.one::<i64>("SELECT snowflake_nextval()") > last);

    // Its row without its progress: what a drop that is rolled back leaves.
    session
        .batch_execute("BEGIN; SELECT pg_replication_origin_drop('snowflake_pg'); ROLLBACK")
        .expect("a superuser may");
    let (code, _, detail, hint) = refusal(&mut session);
    assert_eq!(
        (code.as_str(), detail.as_str()),
        ("55000", "Replication origin \"snowflake_pg\" has lost its progress.")
    );
    assert!(hint.contains("snowflake_set_mark()"), "{hint}");
    server.restart(Stop::Fast);
    assert!(server.log().contains("WARNING:  snowflake_pg: the high-water mark is missing"), "{}", server.log());
    let mut session = server.session();
    assert_eq!(session.code("SELECT snowflake_nextval()").as_deref(), Some("55000"));
    let before: Option<i64> = session.one("SELECT snowflake_set_mark(snowflake_max_id(now()) + 1)");
    assert_eq!(before, None);
    assert!(session.one::<i64>("SELECT snowflake_nextval()") > last);

    // Set back by hand.
    let by_hand = "SELECT pg_replication_origin_advance('snowflake_pg', '0/1')";
    session.batch_execute(by_hand).expect("a superuser may");
    let (code, message, _, hint) = refusal(&mut session);
    assert_eq!((code.as_str(), message.as_str()), ("55000", "the high-water mark was set back"));
    assert!(hint.contains("snowflake_set_mark()"), "{hint}");
    session.batch_execute("SELECT snowflake_set_mark(snowflake_max_id(now()) + 1)").expect("upwards");
    assert!(session.one::<i64>("SELECT snowflake_nextval()") > last);
}

#[test]
fn who_has_the_origin_in_use_makes_extending_fail_and_nothing_worse() {
    let server = Cluster::builder("in_use").start();
    let mut session = server.session();
    let last: i64 = session.one("SELECT snowflake_nextval()");
    let mut user = server.connect();
    user.batch_execute("SELECT pg_replication_origin_session_setup('snowflake_pg')").expect("a superuser may");
    assert!(within(DRY, || session.code("SELECT snowflake_nextval()").as_deref() == Some("55006")), "it goes on");
    user.batch_execute("SELECT pg_replication_origin_session_reset()").expect("a superuser may");
    assert!(session.one::<i64>("SELECT snowflake_nextval()") > last);
}

#[test]
fn without_a_free_replication_state_there_is_no_mark_and_no_id() {
    let setting = origins_setting();
    let mut server = Cluster::builder("no_state").unset("snowflake_pg.worker_id").set(setting, "1").start();
    let other = "SELECT pg_replication_origin_create('other'); SELECT pg_replication_origin_advance('other', '0/1')";
    server.session().batch_execute(other).expect("a superuser may");
    server.set("snowflake_pg.worker_id", "1");
    server.restart(Stop::Fast);
    let mut session = server.session();
    let (code, message, _, hint) = sqlstate(&session.batch_execute("SELECT snowflake_nextval()").unwrap_err());
    assert_eq!((code.as_str(), message.as_str()), ("53400", "no free replication state for the high-water mark"));
    assert!(hint.starts_with(&format!("Increase {setting}")), "{hint}");
    server.set(setting, "2");
    server.restart(Stop::Fast);
    assert!(server.session().one::<i64>("SELECT snowflake_nextval()") > 0);

    server.session().batch_execute("SELECT pg_replication_origin_drop('other')").expect("a superuser may");
    server.session().batch_execute("SELECT pg_replication_origin_drop('snowflake_pg')").expect("a superuser may");
    server.stop(Stop::Fast);
    server.set(setting, "0");
    server.set("wal_level", "minimal");
    server.set("max_wal_senders", "0");
    let log = server.try_start().expect_err("there is no place for a mark");
    assert!(log.contains(&format!("FATAL:  no high-water mark can be kept while \"{setting}\" is 0")), "{log}");
    assert!(log.contains(&format!("HINT:  Set {setting} to 1 or more")), "{log}");
    // A server that only decodes needs none.
    server.unset("snowflake_pg.worker_id");
    server.start();
}

#[test]
fn read_only_transactions_and_parallel_workers_extend_too() {
    let server = Cluster::builder("read_only").set("log_min_messages", "debug1").start();
    let mut session = server.session();
    session.batch_execute("CREATE TABLE seeds AS SELECT FROM generate_series(1, 5000)").expect("a superuser may");
    let extensions = || server.log().matches("extended the reservation").count();
    session.prefer_parallel(2);
    session.one::<i64>("SELECT snowflake_nextval()");
    for sql in ["BEGIN READ ONLY; SELECT snowflake_nextval(); COMMIT", "SELECT snowflake_nextval() FROM seeds"] {
        thread::sleep(Duration::from_millis(2_500));
        let before = extensions();
        session.batch_execute(sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
        assert!(extensions() > before, "{sql}");
    }
    let plan = session.plan("(ANALYZE) SELECT snowflake_nextval() FROM seeds");
    assert!(plan.contains("Workers Launched: 2"), "{plan}");
}
