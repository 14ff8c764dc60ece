//! Where issuing begins: at the clock or the mark, whichever is later. It does not begin if old IDs could come again. Each check
//! also runs on a server that does not load its mark, and must then fail.

use cluster::{Answer, Builder, Chance, Cluster, Stop, assert_caught, check_unique, ensure, sqlstate};

const AHEAD: &str = "the high-water mark is more than a day ahead of the clock";

/// Whether all of these IDs are above those that were issued before.
pub fn check_above(ids: &[i64], before: &[i64], what: &str) -> Result<(), String> {
    let (first, last) = (ids.iter().min(), before.iter().max());
    ensure!(first > last, "{what}: {first:?} is not above {last:?}");
    Ok(())
}

/// Kills a session with SIGKILL, steps the clock, and waits until the server is back.
pub fn crash(server: &Cluster, clock: &str) {
    let _victim = server.connect();
    assert!(server.kill_session(&mut Chance::of("crash")), "the server goes on");
    server.set_clock(clock);
    server.wait_until_back();
}

/// Sets the clock back by an hour, with each way to end a server. By the clock alone, issuing would begin below the last ID.
fn check_hour(builder: Builder) -> Result<(), String> {
    let (mut server, mut session) = builder.clock("+0").start_session();
    for end in ["immediate", "session", "postmaster"] {
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
        let after = session.batch(5000);
        check_above(&after, &before, end)?;
        if end == "immediate" {
            // At most a window and max_ahead above the last ID. Later windows can be longer.
            let times = format!("snowflake_timestamp({}) - snowflake_timestamp({})", after[0], before[0]);
            let gap: f64 = session.one(&format!("SELECT extract(epoch FROM {times})::float8"));
            ensure!((0.0..2.5).contains(&gap), "issuing begins {gap} s above the last ID");
            ensure!(server.log().contains("snowflake_pg: new IDs begin at "), "{}", server.log());
        }
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

/// Checks the error, which names the possible causes.
fn assert_refusal(error: &postgres::Error) {
    let (code, message, detail, hint) = sqlstate(error);
    assert_eq!([code, message], ["55000", AHEAD]);
    assert!(detail.contains("the clock shows 20") && detail.contains("\"41:10:12\""), "{detail}");
    assert!(detail.contains("the epoch is 2010-11-04T01:42:54.657+00:00."), "{detail}");
    for cause in ["clock", "snowflake_pg.epoch", "snowflake_pg.layout", "snowflake_set_mark()"] {
        assert!(hint.contains(cause), "{hint}");
    }
}

#[test]
fn the_limit_is_a_day_and_a_crash_is_judged_as_a_start() {
    let mut server = Cluster::builder("mark_day").clock("+0").start();
    let mut ids = server.session().batch(5000);
    for (clock, refused) in [("-82800", false), ("-90000", true)] {
        server.restart_at(Stop::Immediate, clock);
        let mut session = server.connect();
        match session.query("SELECT snowflake_nextval_batch(5000)", &[]) {
            Ok(rows) => ids.extend(rows.iter().map(|row| row.get::<_, i64>(0))),
            Err(error) => assert!(refused && sqlstate(&error).1 == AHEAD, "{clock}: {error:?}"),
        }
        for sql in ["SELECT snowflake_nextval()", "SELECT snowflake_reserve(3)", "SELECT snowflake_nextval_batch(3)"] {
            match session.batch_execute(sql) {
                Ok(()) => assert!(!refused, "{clock}: {sql}"),
                Err(error) => assert_refusal(&error),
            }
        }
    }
    server.set_clock("+0");
    let mut session = server.connect();
    ids.extend(session.batch(5000));
    // Shared memory is created again, and the state of the clock in it is lost.
    crash(&server, "-172800");
    session = server.connect();
    assert_eq!(session.refusal("SELECT snowflake_nextval()"), ("55000".into(), AHEAD.into()));
    assert_eq!(session.one::<i32>(&format!("SELECT worker_id FROM snowflake_decode({})", ids[0])), 1);
    server.set_clock("+0");
    ids.extend(session.batch(5000));
    check_unique(&mut ids).unwrap();
}

/// Goes from one configuration to the next without a pause. Some could repeat old IDs and are refused. The others begin above
/// them.
fn check_changes(builder: Builder) -> Result<(), String> {
    const TWITTER: &str = "1288834974657";
    // Layout, datacenter ID, worker ID, epoch, and whether IDs can be issued.
    let changes = [
        ("41:5:5:11", "7", "9", TWITTER, true),
        ("41:10:11", "0", "1", TWITTER, true),
        // One bit more makes the IDs twice as large. Then back again.
        ("41:10:12", "0", "1023", TWITTER, true),
        ("41:10:11", "0", "1023", TWITTER, false),
        ("42:10:11", "0", "1023", TWITTER, false),
        ("41:5:5:12", "3", "1", TWITTER, true),
        ("40:5:5:12", "3", "1", "2020-01-01T00:00:00Z", false),
        ("41:5:5:11", "3", "1", TWITTER, false),
        ("37:5:5:12@10ms", "3", "1", TWITTER, false),
        ("41:5:5:12", "0", "0", TWITTER, true),
        ("41:5:5:12", "31", "31", TWITTER, true),
        ("41:0:10:12", "0", "1023", TWITTER, true),
        ("41:12:10", "0", "4095", TWITTER, true),
        // All its IDs are below the mark.
        ("31:10:12@1s", "0", "1", TWITTER, false),
        ("41:10:12", "0", "1", "2011-11-04T00:00:00Z", false),
        ("41:10:12", "0", "1", "2009-01-01T00:00:00Z", true),
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
    check_unique(&mut ids)
}

#[test]
fn what_a_new_configuration_makes_is_new() {
    check_changes(Cluster::builder("mark_changes")).unwrap();
}

#[test]
fn a_new_configuration_without_the_mark_is_caught() {
    assert_caught(check_changes(Cluster::builder("mark_changes_fault").fault("MarkNotLoaded")), "was not refused");
}

/// Workers of one parallel query share their locks, so only the state itself can choose one of them as the loader.
#[test]
fn when_parallel_workers_ask_first_one_of_them_loads() {
    // Reading the clocks takes so long that all workers try to load.
    let mut server = Cluster::builder("start_parallel")
        .fault("ReadsApart")
        .set("max_parallel_workers", "8")
        .set("max_worker_processes", "16")
        .start();
    let seeds =
        "CREATE TABLE seeds AS SELECT FROM generate_series(1, 20000); ALTER TABLE seeds SET (parallel_workers = 6)";
    server.session().run(seeds);
    server.restart(Stop::Fast);
    let mut session = server.session();
    session.prefer_parallel(6);
    let mut ids: Vec<i64> = session.all("SELECT snowflake_nextval() FROM seeds");
    assert_eq!(ids.len(), 20_000);
    check_unique(&mut ids).unwrap();
    let log = server.log();
    assert_eq!(log.matches("snowflake_pg: new IDs begin at ").count(), 1, "{log}");
}
