//! No operation on databases, extensions and replication origins lowers the mark, or lets issuing begin below it. Each check also
//! runs on a server whose mark is removed by hand, and must then fail.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use cluster::{
    Answer, Ask, Builder, Cluster, Load, SetOnDrop, Stop, assert_caught, check_unique, ensure, printed, within,
};

use crate::start::{check_above, crash};

const MISSING: &str = "the high-water mark is missing";

/// The longest time until the reservation is used up.
const DRY: Duration = Duration::from_secs(12);

/// Drops and creates the extension repeatedly, and returns the IDs that were drawn in between.
fn remake(server: &Cluster, database: &str, done: &AtomicBool) -> Vec<i64> {
    let mut session = server.connect_to(database);
    let mut ids = Vec::new();
    while !done.load(Ordering::Relaxed) {
        session.run("DROP EXTENSION snowflake_pg CASCADE; CREATE EXTENSION snowflake_pg");
        // Refused while the mark is set back by hand.
        if let Ok(rows) = session.query("SELECT snowflake_nextval_batch(100)", &[]) {
            ids.extend(rows.iter().map(|row| row.get::<_, i64>(0)));
        }
        thread::sleep(Duration::from_millis(20));
    }
    ids
}

/// Reads the mark as often as possible.
fn watch(server: &Cluster, done: &AtomicBool) -> Result<(), String> {
    let mut session = server.connect();
    let mark = "SELECT max((remote_lsn - '0/0')::bigint) FROM pg_replication_origin_status
                WHERE external_id = 'snowflake_pg'";
    let mut highest: Option<i64> = None;
    while !done.load(Ordering::Relaxed) {
        let now: Option<i64> = session.one(mark);
        ensure!(now >= highest, "the mark fell from {highest:?} to {now:?}");
        highest = now;
    }
    ensure!(highest > Some(1), "the mark never rose: nothing was shown");
    Ok(())
}

/// Performs operations on replication origins, on the extension, and on whole databases. `during` is the last operation of each
/// round under load. `after` runs when the load has ended.
fn check_meddling(builder: Builder, during: &str, after: &str) -> Result<(), String> {
    let mut server = builder.set("fsync", "on").clock("+0").start();
    Load::prepare(&server);
    let mut admin = server.session();
    for name in ["second", "third"] {
        admin.run(&format!("CREATE DATABASE {name}"));
        server.connect_to(name).run("CREATE EXTENSION snowflake_pg");
    }
    let load = Load::start(&server, 3, Ask::READING, "");
    let done = AtomicBool::new(false);
    let (watched, mut ids) = thread::scope(|scope| {
        let _over = SetOnDrop(&done);
        let watcher = scope.spawn(|| watch(&server, &done));
        let remakers = ["postgres", "second"].map(|name| scope.spawn(|| remake(&server, name, &done)));
        let mut third = server.connect_to("third");
        third.run("CREATE TABLE t (id bigint DEFAULT snowflake_nextval())");
        let mut drawn: Vec<i64> = Vec::new();
        for round in 0..5 {
            // Refused while `during` has set the mark back.
            let rows = third.query("INSERT INTO t DEFAULT VALUES RETURNING id", &[]).unwrap_or_default();
            drawn.extend(rows.iter().map(|row| row.get::<_, i64>(0)));
            for sql in [
                "ALTER EXTENSION snowflake_pg UPDATE",
                "CREATE SUBSCRIPTION sub CONNECTION 'dbname=nowhere' PUBLICATION p WITH (connect = false)",
                "ALTER SUBSCRIPTION sub SET (slot_name = NONE)",
                "DROP SUBSCRIPTION sub",
                "SELECT pg_replication_origin_create('other')",
                "SELECT pg_replication_origin_advance('other', '0/1')",
                "SELECT pg_replication_origin_drop('other')",
                "VACUUM FULL pg_replication_origin",
                "REINDEX TABLE pg_replication_origin",
                "TRUNCATE t RESTART IDENTITY",
                "VACUUM FULL t",
                "CHECKPOINT",
                "SELECT pg_reload_conf()",
                "SELECT pg_switch_wal()",
                during,
            ] {
                third.run(sql);
            }
            thread::sleep(Duration::from_millis(300));
            if round == 2 {
                drop(third);
                let mut client = server.connect();
                // Nobody is connected to it.
                client.run("CREATE DATABASE copy TEMPLATE third");
                server.restore_dump("third", "restored");
                for database in ["copy", "restored"] {
                    let rows = server.connect_to(database).query("INSERT INTO t DEFAULT VALUES RETURNING id", &[]);
                    drawn.extend(rows.unwrap_or_default().iter().map(|row| row.get::<_, i64>(0)));
                }
                third = server.connect_to("third");
            }
        }
        admin.run("DROP DATABASE third WITH (FORCE)");
        done.store(true, Ordering::Relaxed);
        drawn.extend(remakers.map(|thread| thread.join().expect("an extension can be made anew")).concat());
        (watcher.join().expect("a mark can be looked at"), drawn)
    });
    let history = load.finish();
    watched?;
    history.check(1_000)?;
    ids.extend(history.ids());
    check_unique(&mut ids)?;
    admin.run(after);
    server.restart_at(Stop::Immediate, "-3600");
    check_above(&server.session().batch(5000), &ids, "an hour back")
}

/// Removes the mark by hand. Nothing can prevent that, and the checks must notice it.
const BY_HAND: &str = "SELECT pg_replication_origin_advance('snowflake_pg', '0/1'); CHECKPOINT";

#[test]
fn what_is_done_to_databases_and_origins_leaves_the_mark() {
    check_meddling(Cluster::builder("mark_meddling"), "SELECT 1", "SELECT 1").unwrap();
}

#[test]
fn a_mark_that_is_lowered_by_hand_is_caught() {
    assert_caught(check_meddling(Cluster::builder("mark_fell"), BY_HAND, "SELECT 1"), "the mark fell");
    assert_caught(check_meddling(Cluster::builder("mark_lost"), "SELECT 1", BY_HAND), "is not above");
}

/// A known limit: a superuser drops the origin, and the server restarts.
#[test]
fn a_superuser_who_drops_the_origin_is_caught() {
    let drop = "SELECT pg_replication_origin_drop('snowflake_pg')";
    assert_caught(check_meddling(Cluster::builder("mark_dropped"), "SELECT 1", drop), "is not above");
}

/// Creates the extension and uses it in transactions that are rolled back, in each possible way.
fn check_unmade(builder: Builder) -> Result<(), String> {
    let mut server = builder.set("max_prepared_transactions", "2").clock("+0").start();
    let mut session = server.connect();
    let mut ids = Vec::new();
    let used = "CREATE EXTENSION snowflake_pg; SELECT snowflake_nextval_batch(1000)";
    for statements in [
        [format!("BEGIN; SAVEPOINT before; {used}"), "ROLLBACK TO before; COMMIT".into()],
        [format!("BEGIN ISOLATION LEVEL SERIALIZABLE; {used}"), "ROLLBACK".into()],
        [format!("BEGIN; {used}; PREPARE TRANSACTION 'unmade'"), "ROLLBACK PREPARED 'unmade'".into()],
        [
            "DO $$ BEGIN CREATE EXTENSION snowflake_pg; PERFORM snowflake_nextval(); RAISE 'no';
                   EXCEPTION WHEN others THEN END $$"
                .into(),
            String::new(),
        ],
    ] {
        for sql in &statements {
            let rows = printed(&mut session, sql).expect("a superuser may");
            ids.extend(rows.iter().filter_map(|row| row.parse::<i64>().ok()));
        }
    }
    ensure!(ids.len() == 3_000, "{} IDs", ids.len());
    let made = "CREATE SUBSCRIPTION next CONNECTION 'dbname=nowhere' PUBLICATION p WITH (connect = false)";
    session.run(made);
    let progress: Option<String> = session.one(
        "SELECT pg_replication_origin_progress(roname, false)::text FROM pg_replication_origin WHERE roname LIKE 'pg_%'",
    );
    ensure!(progress.is_none(), "a subscription inherits {progress:?}");
    let rows: Vec<String> = session.all("SELECT roname FROM pg_replication_origin WHERE roname NOT LIKE 'pg_%'");
    ensure!(rows == ["snowflake_pg"], "there are rows {rows:?}");
    let states: Vec<Option<String>> = session.all("SELECT external_id FROM pg_replication_origin_status");
    ensure!(states == [Some("snowflake_pg".into())], "there are states {states:?}");
    server.restart_at(Stop::Immediate, "-3600");
    check_above(&server.session().batch(5000), &ids, "an hour back")?;
    check_unique(&mut ids)
}

#[test]
fn an_extension_that_was_never_made_leaves_its_mark_and_no_more() {
    check_unmade(Cluster::builder("mark_unmade")).unwrap();
}

#[test]
fn a_mark_made_in_a_transaction_that_was_undone_is_caught() {
    assert_caught(check_unmade(Cluster::builder("mark_unmade_fault").fault("MarkMadeByUser")), "inherits");
}

#[test]
fn progress_that_is_lost_is_given_back_without_a_restart() {
    let (mut server, mut session) = Cluster::builder("mark_given").set("fsync", "on").clock("+0").start_session();
    let mut ids = session.batch(5000);
    session.run("BEGIN; SELECT pg_replication_origin_drop('snowflake_pg'); ROLLBACK");
    let mut refused = || match session.query("SELECT snowflake_nextval_batch(100)", &[]) {
        Ok(rows) => {
            ids.extend(rows.iter().map(|row| row.get::<_, i64>(0)));
            false
        }
        Err(_) => true,
    };
    assert!(within(DRY, || (0..3).all(|_| refused())), "it goes on");
    assert_eq!(session.refusal("SELECT snowflake_nextval()"), ("55000".into(), MISSING.into()));
    let highest = ids.iter().max().expect("IDs were drawn");
    let given = format!("SELECT snowflake_set_mark({highest} + 1)");
    assert_eq!(session.one::<Option<i64>>(&given), None);
    assert!(server.log().contains("DETAIL:  The previous mark was missing."), "{}", server.log());
    let next = session.batch(5000);
    check_above(&next, &ids, "at once").unwrap();
    server.restart_at(Stop::Immediate, "-3600");
    check_above(&server.session().batch(5000), &next, "an hour back").unwrap();
}

#[test]
fn a_crash_after_the_drop_of_the_origin_does_not_begin_anew() {
    let (mut server, mut session) = Cluster::builder("mark_crashed").clock("+0").start_session();
    let ids = session.batch(5000);
    session.run("SELECT pg_replication_origin_drop('snowflake_pg')");
    // There is no replication origin in which the mark could be set.
    let set = "SELECT snowflake_set_mark(snowflake_max_id(now()), force => true)";
    let [code, message, detail, hint] = session.error(set);
    assert_eq!([code, message], ["55000", MISSING]);
    assert_eq!(detail, "Replication origin \"snowflake_pg\" was dropped.");
    assert!(hint.contains("restart the server"), "{hint}");
    crash(&server, "+0");
    let [code, message, _, hint] = server.connect().error("SELECT snowflake_nextval()");
    assert_eq!([code, message], ["55000", MISSING]);
    assert!(hint.contains("restart the server"), "{hint}");
    server.restart(Stop::Immediate);
    let remade = || server.log().contains("created replication origin \"snowflake_pg\"");
    assert!(within(DRY, remade), "{}", server.log());
    check_above(&server.session().batch(5000), &ids, "after a restart").unwrap();
}

#[test]
fn who_has_the_origin_in_use_under_load_makes_nothing_come_twice() {
    let mut server = Cluster::builder("mark_in_use").set("fsync", "on").clock("+0").start();
    Load::prepare(&server);
    let load = Load::start(&server, 3, Ask::ALL, "");
    for clock in ["-1", "-2"] {
        let mut user = server.connect();
        let refused = || server.log().contains("the high-water mark is in use by a session");
        // A session may be extending at this moment, but never has the origin in use.
        user.run("SELECT pg_replication_origin_session_setup('snowflake_pg')");
        assert!(within(DRY, refused), "{}", server.log());
        user.run("SELECT pg_replication_origin_session_reset()");
        thread::sleep(Duration::from_millis(200));
        user.run("SELECT pg_replication_origin_session_setup('snowflake_pg')");
        thread::sleep(Duration::from_millis(700));
        server.restart_at(Stop::Immediate, clock);
    }
    thread::sleep(Duration::from_millis(300));
    let history = load.finish();
    let expected = |text: &String| text.is_empty() || text.starts_with("55006") || text.starts_with("57P");
    assert!(history.errors.keys().all(expected), "{:?}", history.errors);
    history.check(1_000).unwrap();
}
