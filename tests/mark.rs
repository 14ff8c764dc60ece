//! Nothing that is done to a server lowers the mark, or lets issuing begin below it. Each check is run, too, on a server that
//! forgets its mark or loses it by hand, and must then fail.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use cluster::{
    Answer, Ask, Builder, Chance, Client, Cluster, Load, Stop, assert_caught, check_ledger, ensure, sqlstate, within,
};
use postgres::SimpleQueryMessage;

const AHEAD: &str = "the high-water mark is more than a day ahead of the clock";
const MISSING: &str = "the high-water mark is missing";

/// Longest time in which what is reserved is used up.
const DRY: Duration = Duration::from_secs(12);

/// Whether all of these lie above what was issued before.
fn check_above(ids: &[i64], before: &[i64], what: &str) -> Result<(), String> {
    let (first, last) = (ids.iter().min(), before.iter().max());
    ensure!(first > last, "{what}: {first:?} is not above {last:?}");
    Ok(())
}

/// Kills a session by force, steps the clock, and waits until the server is back.
fn crash(server: &Cluster, clock: &str) {
    let _victim = server.connect();
    assert!(server.kill_session(&mut Chance::of("crash")), "the server goes on");
    server.set_clock(clock);
    server.wait_until_back();
}

/// An hour back, by each way to end a server: the clock alone would begin below.
fn check_hour(builder: Builder) -> Result<(), String> {
    let mut server = builder.clock("+0").start();
    let mut session = server.session();
    for end in ["session", "postmaster", "immediate"] {
        server.set_clock("+0");
        let before = session.batch(5000);
        match end {
            "session" => crash(&server, "-3600"),
            "postmaster" => server.kill_postmaster(),
            _ => server.stop(Stop::Immediate),
        }
        if end != "session" {
            server.set_clock("-3600");
            server.start();
        }
        session = server.connect();
        check_above(&session.batch(5000), &before, end)?;
    }
    Ok(())
}

#[test]
fn an_hour_back_begins_above_all_before() {
    check_hour(Cluster::builder("mark_hour")).unwrap();
}

#[test]
fn an_hour_back_without_the_mark_is_caught() {
    assert_caught(check_hour(Cluster::builder("mark_hour_fault").fault("MarkNotLoaded")), "is not above");
}

#[test]
fn the_limit_is_a_day_and_a_crash_is_judged_as_a_start() {
    let mut server = Cluster::builder("mark_day").clock("+0").start();
    let mut ids = server.session().batch(5000);
    for (clock, refused) in [("-82800", false), ("-90000", true)] {
        server.stop(Stop::Immediate);
        server.set_clock(clock);
        server.start();
        let mut session = server.connect();
        match session.query("SELECT snowflake_nextval_batch(5000)", &[]) {
            Ok(rows) => ids.extend(rows.iter().map(|row| row.get::<_, i64>(0))),
            Err(error) => assert!(refused && sqlstate(&error).1 == AHEAD, "{clock}: {error:?}"),
        }
        assert_eq!(session.code("SELECT snowflake_nextval()").is_some(), refused, "{clock}");
    }
    server.set_clock("+0");
    let mut session = server.connect();
    ids.extend(session.batch(5000));
    // Shared memory is made anew, and with it what was known of the clock.
    crash(&server, "-172800");
    session = server.connect();
    assert_eq!(session.refusal("SELECT snowflake_nextval()"), ("55000".into(), AHEAD.into()));
    assert_eq!(session.one::<i32>(&format!("SELECT worker_id FROM snowflake_decode({})", ids[0])), 1);
    server.set_clock("+0");
    ids.extend(session.batch(5000));
    check_ledger(&mut ids).unwrap();
}

/// From one configuration to the next, without a pause: some could make old IDs again, the others begin above them.
fn check_changes(builder: Builder) -> Result<(), String> {
    const TWITTER: &str = "1288834974657";
    // Layout, datacenter ID, worker ID, epoch, and whether IDs may go on.
    let changes = [
        ("41:5:5:11", "7", "9", TWITTER, true),
        ("41:10:11", "0", "1", TWITTER, true),
        // A bit more: numbers twice as large, and back again.
        ("41:10:12", "0", "1023", TWITTER, true),
        ("41:10:11", "0", "1023", TWITTER, false),
        ("42:10:11", "0", "1023", TWITTER, false),
        ("41:5:5:12", "0", "0", TWITTER, true),
        ("41:12:10", "0", "4095", TWITTER, true),
        // None of its IDs is as large as the mark.
        ("31:10:12@1s", "0", "1", TWITTER, false),
        ("41:10:12", "0", "1", "2011-11-04T00:00:00Z", false),
        ("41:10:12", "0", "1", "1970-01-01T00:00:00Z", true),
        ("41:10:12", "0", "1", TWITTER, false),
    ];
    let mut server = builder.create();
    let mut ids: Vec<i64> = Vec::new();
    for (layout, datacenter, worker, epoch, goes_on) in changes {
        for (name, value) in
            [("layout", layout), ("datacenter_id", datacenter), ("worker_id", worker), ("epoch", epoch)]
        {
            server.set(&format!("snowflake_pg.{name}"), value);
        }
        server.start();
        let mut session = server.session();
        let what = format!("{layout} of {epoch}");
        match session.query("SELECT snowflake_nextval_batch(5000)", &[]) {
            Ok(rows) => {
                ensure!(goes_on, "{what} was not refused");
                let drawn: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
                check_above(&drawn, &ids, &what)?;
                ids.extend(drawn);
            }
            Err(error) => {
                let (code, message, ..) = sqlstate(&error);
                ensure!(!goes_on && code == "55000" && message == AHEAD, "{what} ended in {code} {message}");
            }
        }
        server.stop(Stop::Immediate);
    }
    check_ledger(&mut ids)
}

#[test]
fn what_a_new_configuration_makes_is_new() {
    check_changes(Cluster::builder("mark_changes")).unwrap();
}

#[test]
fn a_new_configuration_without_the_mark_is_caught() {
    assert_caught(check_changes(Cluster::builder("mark_changes_fault").fault("MarkNotLoaded")), "was not refused");
}

/// Makes the extension anew again and again, and returns what was drawn in between.
fn remake(server: &Cluster, database: &str, done: &AtomicBool) -> Vec<i64> {
    let mut session = server.connect_to(database);
    let mut ids = Vec::new();
    while !done.load(Ordering::Relaxed) {
        session
            .batch_execute("DROP EXTENSION snowflake_pg CASCADE; CREATE EXTENSION snowflake_pg")
            .expect("a superuser may");
        // Refused while somebody else has set the mark back.
        if let Ok(rows) = session.query("SELECT snowflake_nextval_batch(100)", &[]) {
            ids.extend(rows.iter().map(|row| row.get::<_, i64>(0)));
        }
        thread::sleep(Duration::from_millis(20));
    }
    ids
}

/// Looks at the mark as often as it can.
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

/// What touches replication origins, the extension, or all of a database. `during` is done last under load, `after` when
/// nobody draws any more.
fn check_meddling(builder: Builder, during: &str, after: &str) -> Result<(), String> {
    let mut server = builder.set("fsync", "on").clock("+0").start();
    Load::prepare(&server);
    let mut admin = server.session();
    for name in ["second", "third"] {
        admin.batch_execute(&format!("CREATE DATABASE {name}")).expect("a superuser may");
        server.connect_to(name).batch_execute("CREATE EXTENSION snowflake_pg").expect("a superuser may");
    }
    let load = Load::start(&server, 3, Ask::READING, "");
    let done = AtomicBool::new(false);
    let (watched, mut ids) = thread::scope(|scope| {
        let watcher = scope.spawn(|| watch(&server, &done));
        let remakers = ["postgres", "second"].map(|name| scope.spawn(|| remake(&server, name, &done)));
        let mut third = server.connect_to("third");
        for _ in 0..5 {
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
                "CHECKPOINT",
                "SELECT pg_switch_wal()",
                during,
            ] {
                third.batch_execute(sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
            }
            thread::sleep(Duration::from_millis(300));
        }
        admin.batch_execute("DROP DATABASE third WITH (FORCE)").expect("a superuser may");
        done.store(true, Ordering::Relaxed);
        let ids = remakers.map(|thread| thread.join().expect("an extension can be made anew")).concat();
        (watcher.join().expect("a mark can be looked at"), ids)
    });
    let ledger = load.finish();
    watched?;
    ledger.check(1_000)?;
    ids.extend(ledger.ids());
    check_ledger(&mut ids)?;
    admin.batch_execute(after).expect("a superuser may");
    server.stop(Stop::Immediate);
    server.set_clock("-3600");
    server.start();
    check_above(&server.session().batch(5000), &ids, "an hour back")
}

/// Somebody who takes the mark away by hand: nothing can keep that from being done, and the checks see it.
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

/// The numbers that some statements return.
fn numbers(session: &mut Client, sql: &str) -> Vec<i64> {
    let messages = session.simple_query(sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
    let row = |message: &SimpleQueryMessage| match message {
        SimpleQueryMessage::Row(row) => row.get(0)?.parse().ok(),
        _ => None,
    };
    messages.iter().filter_map(row).collect()
}

/// Every way to make the extension, use it, and have never made it.
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
        statements.iter().for_each(|sql| ids.extend(numbers(&mut session, sql)));
    }
    ensure!(ids.len() == 3_000, "{} IDs", ids.len());
    let made = "CREATE SUBSCRIPTION next CONNECTION 'dbname=nowhere' PUBLICATION p WITH (connect = false)";
    session.batch_execute(made).expect("a superuser may");
    let progress: Option<String> = session.one(
        "SELECT pg_replication_origin_progress(roname, false)::text FROM pg_replication_origin WHERE roname LIKE 'pg_%'",
    );
    ensure!(progress.is_none(), "a subscription inherits {progress:?}");
    let rows: Vec<String> = session.all("SELECT roname FROM pg_replication_origin WHERE roname NOT LIKE 'pg_%'");
    ensure!(rows == ["snowflake_pg"], "there are rows {rows:?}");
    let states: Vec<Option<String>> = session.all("SELECT external_id FROM pg_replication_origin_status");
    ensure!(states == [Some("snowflake_pg".into())], "there are states {states:?}");
    server.stop(Stop::Immediate);
    server.set_clock("-3600");
    server.start();
    check_above(&server.session().batch(5000), &ids, "an hour back")?;
    check_ledger(&mut ids)
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
    let mut server = Cluster::builder("mark_given").set("fsync", "on").clock("+0").start();
    let mut session = server.session();
    let mut ids = session.batch(5000);
    session
        .batch_execute("BEGIN; SELECT pg_replication_origin_drop('snowflake_pg'); ROLLBACK")
        .expect("a superuser may");
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
    assert!(server.log().contains("DETAIL:  It was missing."), "{}", server.log());
    let next = session.batch(5000);
    check_above(&next, &ids, "at once").unwrap();
    server.stop(Stop::Immediate);
    server.set_clock("-3600");
    server.start();
    check_above(&server.session().batch(5000), &next, "an hour back").unwrap();
}

#[test]
fn a_crash_after_the_drop_of_the_origin_does_not_begin_anew() {
    let mut server = Cluster::builder("mark_crashed").clock("+0").start();
    let mut session = server.session();
    let ids = session.batch(5000);
    session.batch_execute("SELECT pg_replication_origin_drop('snowflake_pg')").expect("a superuser may");
    // There is nothing to set it in.
    let set = "SELECT snowflake_set_mark(snowflake_max_id(now()), force => true)";
    let (code, message, detail, hint) = sqlstate(&session.batch_execute(set).unwrap_err());
    assert_eq!((code.as_str(), message.as_str()), ("55000", MISSING));
    assert_eq!(detail, "Replication origin \"snowflake_pg\" was dropped.");
    assert!(hint.contains("restart the server"), "{hint}");
    crash(&server, "+0");
    let (code, message, _, hint) =
        sqlstate(&server.connect().batch_execute("SELECT snowflake_nextval()").expect_err("there is no mark"));
    assert_eq!((code.as_str(), message.as_str()), ("55000", MISSING));
    assert!(hint.contains("restart the server"), "{hint}");
    server.restart(Stop::Immediate);
    let remade = || server.log().contains("made replication origin \"snowflake_pg\"");
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
        let refused = || server.log().contains("is already active for PID");
        // Somebody may be extending at this moment, but never has it in use.
        user.batch_execute("SELECT pg_replication_origin_session_setup('snowflake_pg')").expect("a superuser may");
        assert!(within(DRY, refused), "{}", server.log());
        user.batch_execute("SELECT pg_replication_origin_session_reset()").expect("a superuser may");
        thread::sleep(Duration::from_millis(200));
        user.batch_execute("SELECT pg_replication_origin_session_setup('snowflake_pg')").expect("a superuser may");
        thread::sleep(Duration::from_millis(700));
        server.stop(Stop::Immediate);
        server.set_clock(clock);
        server.start();
    }
    thread::sleep(Duration::from_millis(300));
    let ledger = load.finish();
    let expected = |text: &String| text.is_empty() || text.starts_with("55006") || text.starts_with("57P");
    assert!(ledger.errors.keys().all(expected), "{:?}", ledger.errors);
    ledger.check(1_000).unwrap();
}
