//! The cost of durability: a flush now and then under load, none while idle, and a wait like that of a COMMIT if the disk is slow.

use std::thread;
use std::time::{Duration, Instant};

use cluster::{
    Answer, Ask, Builder, Chance, Client, Cluster, Load, SOON, Stop, assert_caught, check_increasing, end_of, ensure,
    within,
};

/// How often the reservation was extended since the start of a server that logs extensions.
fn extensions(server: &Cluster) -> usize {
    server.log().matches("snowflake_pg: extended the reservation").count()
}

fn logging(name: &str) -> Builder {
    Cluster::builder(name).set("log_min_messages", "debug1")
}

/// Without the WAL that PostgreSQL itself writes for standbys, vacuum and checkpoints.
fn quiet(builder: Builder) -> Builder {
    let settings =
        [("wal_level", "minimal"), ("max_wal_senders", "0"), ("autovacuum", "off"), ("checkpoint_timeout", "1h")];
    settings.iter().fold(builder, |builder, (name, value)| builder.set(name, value))
}

#[test]
fn under_load_the_mark_is_flushed_twice_a_second_whoever_draws() {
    let server = logging("extension_load").start();
    Load::prepare(&server);
    for sessions in [1, 8] {
        let (before, begun) = (extensions(&server), Instant::now());
        let load = Load::start(&server, sessions, Ask::READING, "");
        thread::sleep(Duration::from_secs(4));
        load.finish().check(1_000).unwrap();
        let (count, seconds) = ((extensions(&server) - before) as f64, begun.elapsed().as_secs_f64());
        // A window of one second is extended when half of it is used. The first window after a pause can be longer.
        assert!((1.0..=2.0 * seconds + 2.0).contains(&count), "{sessions} sessions: {count} in {seconds} s");
    }
}

#[test]
fn a_quiet_table_pays_a_flush_in_seconds() {
    let (server, mut session) = logging("extension_quiet").start_session();
    let begun = Instant::now();
    let mut ids: Vec<i64> = Vec::new();
    while begun.elapsed() < Duration::from_secs(15) {
        ids.push(session.one("SELECT snowflake_nextval()"));
        thread::sleep(Duration::from_millis(450));
    }
    check_increasing(&ids).unwrap();
    // Windows of 1, 2, 4, 8 and 10 s, renewed at half of each: nine at most, not one for each row.
    assert!((2..=9).contains(&extensions(&server)), "{} for {} rows", extensions(&server), ids.len());
}

#[test]
fn an_idle_server_writes_nothing_and_the_next_id_pays_once() {
    let (server, mut session) = quiet(logging("extension_idle")).start_session();
    for _ in 0..3 {
        session.one::<i64>("SELECT max(id) FROM snowflake_nextval_batch(1000) AS id");
    }
    let written = "SELECT pg_current_wal_insert_lsn()::text";
    let (lsn, count): (String, usize) = (session.one(written), extensions(&server));
    // Longer than the longest window. `make soak` idles for ten minutes.
    let idle = std::env::var("SOAK_IDLE").ok().and_then(|text| text.parse().ok()).unwrap_or(12);
    thread::sleep(Duration::from_secs(idle));
    assert_eq!(session.one::<String>(written), lsn);
    session.one::<i64>("SELECT snowflake_nextval()");
    assert_eq!(extensions(&server), count + 1);
    assert_ne!(session.one::<String>(written), lsn);
}

#[test]
fn a_disk_that_takes_two_seconds_delays_and_repeats_nothing() {
    let mut chance = Chance::of("extension_slow");
    let mut server = Cluster::builder("extension_slow").fault("SlowDisk").set("fsync", "on").clock("+0").start();
    Load::prepare(&server);
    let load = Load::start(&server, 6, Ask::READING, "");
    for round in 0..4 {
        // The server is stopped while the mark is written and not yet on disk, or some time later.
        thread::sleep(Duration::from_millis(1_200) + chance.millis(3_000));
        server
            .restart_at(Stop::Immediate, &format!("{:+.3}", chance.between(-3_000, 0) as f64 / 1e3 - f64::from(round)));
    }
    thread::sleep(Duration::from_millis(4_500));
    let history = load.finish();
    let broken = |(text, _): (&String, &u64)| !text.is_empty() && !text.starts_with("57P");
    assert!(!history.errors.iter().any(broken), "{:?}", history.errors);
    assert!(history.slowest > Duration::from_millis(1_500), "nothing was slow: {:?}", history.slowest);
    history.check(1_000).unwrap();
}

#[test]
fn a_flush_that_takes_long_is_logged() {
    let server = Cluster::builder("extension_stuck").fault("StuckDisk").start();
    server.session().one::<i64>("SELECT snowflake_nextval()");
    let log = server.log();
    let after = |text: &str| log.split_once(text).map(|(_, rest)| rest);
    let rest = after("WARNING:  snowflake_pg: the high-water mark has been flushed to disk after a long wait")
        .unwrap_or_else(|| panic!("{log}"));
    let detail = rest.lines().nth(1).unwrap_or_default();
    assert!(
        detail.contains("A request for an ID has waited ") && detail.contains(" for WAL to be flushed up to 0/"),
        "{detail}"
    );
    assert!(rest.contains("HINT:  Check the disk that stores the write-ahead log."), "{log}");
}

/// The flush of a mark is stuck, and the session that wrote the mark has given up. A second session finds the mark, and logs what it waits
/// for.
fn check_stuck(name: &str, faults: &str) -> Result<(), String> {
    const LINE: &str = "WARNING:  snowflake_pg: the high-water mark has been waiting to be flushed to disk since ";
    const DRAW: &str = "SELECT snowflake_nextval()";
    // No other process flushes the mark.
    let server = quiet(Cluster::builder(name)).fault(faults).start();
    let [mut first, mut second] = [server.session(), server.session()].map(|mut session| {
        session.run("SET statement_timeout = '250ms'");
        session
    });
    assert_eq!(first.code(DRAW).as_deref(), Some("57014"));
    assert!(!server.log().contains(LINE), "{}", server.log());
    let told = within(SOON, || second.code(DRAW).is_none() || server.log().contains(LINE));
    for _ in 0..8 {
        let found = second.code(DRAW);
        ensure!(found.as_deref() == Some("57014"), "the flush is not stuck: {found:?}");
    }
    let log = server.log();
    ensure!(told && log.contains(LINE), "nothing is logged:\n{log}");
    let count = log.matches(LINE).count();
    ensure!(count == 1, "logged {count} times");
    let pid: i32 = second.one("SELECT pg_backend_pid()");
    let lines: Vec<&str> = log.lines().skip_while(|line| !line.contains(LINE)).take(3).collect();
    assert!(lines[0].contains(&format!("[{pid}]")), "{pid}: {lines:?}");
    assert!(
        lines[1].contains("A request for an ID has waited ") && lines[1].contains(" for WAL to be flushed up to 0/")
    );
    assert!(lines[2].contains("HINT:  Check the disk that stores the write-ahead log."), "{lines:?}");
    Ok(())
}

#[test]
fn a_second_session_logs_once_that_a_flush_is_stuck() {
    check_stuck("extension_second", "StuckDisk").unwrap();
}

#[test]
fn a_stuck_flush_that_every_request_logs_is_caught() {
    assert_caught(check_stuck("extension_talkative", "StuckDisk TalkativeLog"), "times");
}

#[test]
fn who_waits_for_the_mark_can_be_cancelled_and_terminated() {
    let (mut server, mut other) = Cluster::builder("extension_cancel").start_session();
    let mut sessions: Vec<Client> = (0..3).map(|_| server.session()).collect();
    let last: i64 = sessions[0].one("SELECT snowflake_nextval()");
    // A standby that does not exist acknowledges no mark.
    server.set("synchronous_standby_names", "nobody");
    server.reload();
    assert!(within(Duration::from_secs(10), || other.one::<String>("SHOW synchronous_standby_names") == "nobody"));
    // The checkpointer has seen it, too.
    other.run("SET synchronous_commit = local; CHECKPOINT");
    thread::sleep(Duration::from_millis(1_100));
    let pids: Vec<i32> = sessions.iter_mut().map(|session| session.one("SELECT pg_backend_pid()")).collect();
    let waiting: Vec<_> = sessions
        .into_iter()
        .map(|mut session| {
            thread::spawn(move || {
                let result = session.batch_execute("SELECT snowflake_nextval()");
                (Instant::now(), result, session)
            })
        })
        .collect();
    for (n, (pid, thread)) in pids.iter().zip(waiting).enumerate() {
        let shown = format!("SELECT coalesce(max(wait_event_type), '') FROM pg_stat_activity WHERE pid = {pid}");
        assert!(within(Duration::from_secs(5), || other.one::<String>(&shown) == "Extension"));
        let (function, code) = if n == 2 { ("pg_terminate_backend", "57P01") } else { ("pg_cancel_backend", "57014") };
        let begun = Instant::now();
        other.one::<bool>(&format!("SELECT {function}({pid})"));
        let (answered, result, mut session) = thread.join().expect("a session's thread ends");
        assert_eq!(end_of(&result.expect_err("nobody acknowledges"), *pid, &server), code);
        assert!(answered - begun < Duration::from_secs(2), "{function} was answered after {:?}", answered - begun);
        if n < 2 {
            // A cancelled session holds no lock.
            let held = "SELECT count(*) FROM pg_locks WHERE relation = 'pg_replication_origin'::regclass AND pid = ";
            assert_eq!(other.one::<i64>(&format!("{held}{pid}")), 0);
            assert_eq!(session.one::<i32>("SELECT 1"), 1);
        }
    }
    server.unset("synchronous_standby_names");
    server.reload();
    assert!(other.one::<i64>("SELECT snowflake_nextval()") > last);
}
