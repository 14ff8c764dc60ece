//! A synchronous standby that is slow or unreachable: sessions that give up early do not keep each other from IDs, waiting
//! sessions use no processor time, and the status shows the reason for the wait.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use cluster::{Answer, Ask, Builder, Cluster, Load, Proxy, SOON, assert_caught, ensure, within};

/// A primary and its synchronous standby. The acknowledgements pass through a proxy.
struct Pair {
    // The fields are dropped in this order. If the primary were dropped first, the standby would connect to it again, and the primary
    // would wait for a login that the proxy holds back.
    _standby: Cluster,
    primary: Cluster,
    proxy: Proxy,
}

impl Pair {
    fn start(name: &str, like: impl FnOnce(Builder) -> Builder) -> Pair {
        let builder = Cluster::builder(&format!("{name}_primary")).set("wal_sender_timeout", "0");
        let mut primary = like(builder).start();
        Load::prepare(&primary);
        let proxy = Proxy::before(&primary, &format!("{name}_proxy"));
        let standby = primary.standby_through(&proxy, Cluster::builder(&format!("{name}_standby")));
        primary.rely_on_standby();
        Pair { _standby: standby, primary, proxy }
    }
}

/// Sessions whose statement_timeout is shorter than the time for an acknowledgement.
fn check_impatient_sessions(name: &str, like: fn(Builder) -> Builder) -> Result<(), String> {
    let pair = Pair::start(name, like);
    pair.proxy.delay(Duration::from_millis(400));
    // The reservation that was published before is used up.
    thread::sleep(Duration::from_secs(2));
    let load = Load::start(&pair.primary, 2, Ask::READING, "SET statement_timeout = '300ms'");
    thread::sleep(Duration::from_secs(10));
    let history = load.finish();
    println!("{name}: {} IDs, errors {:?}", history.len(), history.errors);
    let timeouts: u64 = history.errors.values().sum();
    ensure!(history.errors.keys().all(|error| error.starts_with("57014")), "{:?}", history.errors);
    history.check(1_000)?;
    // At first there are no IDs to issue. From then on, the reservation is extended in advance.
    ensure!(history.len() as u64 > 100 * timeouts, "{timeouts} statements were cancelled");
    Ok(())
}

#[test]
fn impatient_sessions_get_ids_beside_a_slow_standby() {
    check_impatient_sessions("slow_standby", |server| server).unwrap();
}

#[test]
fn a_mark_that_is_thrown_away_with_its_session_is_caught() {
    assert_caught(check_impatient_sessions("slow_forgotten", |server| server.fault("PendingForgotten")), "only");
}

#[test]
fn no_id_comes_again_after_a_failover_from_impatient_sessions() {
    let Pair { mut primary, _standby: standby, proxy } = Pair::start("slow_failover", |server| server);
    proxy.delay(Duration::from_millis(400));
    let load = Load::start(&primary, 4, Ask::ALL, "SET statement_timeout = '300ms'");
    thread::sleep(Duration::from_secs(4));
    proxy.hold();
    thread::sleep(Duration::from_secs(3));
    primary.kill_postmaster();
    let mut history = load.finish();
    standby.promote();
    let mut session = standby.connect();
    history.stretches.push(session.batch(10_000));
    history.check(10_100).unwrap();
}

/// A mark is set back by hand while it waits for its acknowledgement.
fn check_set_back(name: &str, like: fn(Builder) -> Builder) -> Result<(), String> {
    let pair = Pair::start(name, like);
    let mut session = pair.primary.connect();
    session.batch(10);
    pair.proxy.hold();
    session.run("SET statement_timeout = '250ms'");
    ensure!(within(SOON, || session.code("SELECT snowflake_nextval()").is_some()), "nothing waits for the standby");
    session.run("SET synchronous_commit = local; SELECT pg_replication_origin_advance('snowflake_pg', '0/1')");
    pair.proxy.delay(Duration::ZERO);
    session.run("RESET statement_timeout");
    let found = session.code("SELECT snowflake_nextval()");
    ensure!(found.as_deref() == Some("55000"), "an ID above the mark that is stored: {found:?}");
    Ok(())
}

#[test]
fn a_pending_mark_that_was_set_back_is_not_published() {
    check_set_back("slow_set_back", |server| server).unwrap();
}

#[test]
fn a_pending_mark_that_is_trusted_is_caught() {
    let trusted = check_set_back("slow_trusted", |server| server.fault("PendingTrusted"));
    assert_caught(trusted, "above the mark that is stored");
}

#[test]
fn a_session_that_is_cancelled_gives_its_claim_to_the_next() {
    let claims = |name: &str, like: fn(Builder) -> Builder| {
        let pair = Pair::start(name, |server| like(server).set("log_min_messages", "debug2"));
        pair.proxy.hold();
        let mut session = pair.primary.connect();
        session.run("SET statement_timeout = '250ms'");
        assert!(within(SOON, || session.code("SELECT snowflake_nextval()").is_some()));
        for _ in 0..8 {
            // Each statement is alone. It waits for no other session if the one before has released its claim.
            assert_eq!(session.code("SELECT snowflake_nextval()").as_deref(), Some("57014"));
        }
        pair.primary.log().matches("waiting for another session to extend the reservation").count()
    };
    assert_eq!(claims("slow_claim", |server| server), 0);
    assert!(claims("slow_claim_kept", |server| server.fault("ClaimKept")) > 0, "the claim that is kept is not noticed");
}

/// The number of voluntary context switches of the backends so far.
fn switches(pids: &[i32]) -> u64 {
    let of = |pid: &i32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the session lives");
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.and_then(|count| count.trim().parse::<u64>().ok()).expect("Linux counts them")
    };
    pids.iter().map(of).sum()
}

/// Many sessions wait for a standby that is unreachable.
fn check_waiting_sessions(name: &str, like: fn(Builder) -> Builder) -> Result<(), String> {
    const SESSIONS: usize = 60;
    let pair = Pair::start(name, like);
    pair.proxy.hold();
    thread::sleep(Duration::from_secs(2));
    let mut sessions: Vec<_> = (0..SESSIONS).map(|_| pair.primary.connect()).collect();
    let pids: Vec<i32> = sessions.iter_mut().map(|session| session.one("SELECT pg_backend_pid()")).collect();
    let waiting: Vec<_> = sessions
        .into_iter()
        .map(|mut session| thread::spawn(move || session.one::<i64>("SELECT snowflake_nextval()")))
        .collect();
    let mut watcher = pair.primary.connect();
    let all = format!("SELECT count(*) = {SESSIONS} FROM snowflake_stat_backends WHERE waiting_for = 'mark'");
    ensure!(within(SOON, || watcher.one(&all)), "not all sessions wait");
    // Long enough for the pauses to grow.
    thread::sleep(Duration::from_secs(2));
    let (before, begun) = (switches(&pids), Instant::now());
    thread::sleep(Duration::from_secs(4));
    let each = (switches(&pids) - before) as f64 / begun.elapsed().as_secs_f64() / SESSIONS as f64;
    // All sessions continue as soon as the standby responds.
    pair.proxy.delay(Duration::ZERO);
    let mut ids: Vec<i64> = waiting.into_iter().map(|session| session.join().expect("an ID")).collect();
    cluster::check_unique(&mut ids)?;
    // One session looks for all of them, 20 times a second. Each of the others looks once a second whether that session has
    // stopped.
    ensure!(each < 4.0, "{each:.0} context switches a second for each session that waits");
    Ok(())
}

#[test]
fn sessions_that_wait_for_a_standby_leave_the_machine_alone() {
    check_waiting_sessions("slow_waiting", |server| server).unwrap();
}

#[test]
fn sessions_that_poll_are_caught() {
    let polling = check_waiting_sessions("slow_polling", |server| server.fault("PollingWait"));
    assert_caught(polling, "context switches a second");
}

#[test]
fn the_status_says_what_the_next_id_waits_for_and_since_when() {
    let pair = Pair::start("slow_status", |server| server);
    let mut watcher = pair.primary.connect();
    let state = "SELECT state || coalesce(': ' || problem, '') FROM snowflake_status";
    watcher.batch(10);
    assert_eq!(watcher.one::<String>(state), "issuing");
    pair.proxy.hold();
    let mut session = pair.primary.connect();
    let waiting = thread::spawn(move || {
        // The first request takes the rest of the reservation, so that a later one has to wait.
        (0..40).for_each(|_| {
            session.one::<i64>("SELECT snowflake_nextval()");
            thread::sleep(Duration::from_millis(200));
        });
    });
    assert!(within(SOON, || watcher.one("SELECT state = 'waiting' FROM snowflake_status")));
    let (problem, hint): (String, String) = {
        let row = watcher.query_one("SELECT problem, hint FROM snowflake_status", &[]).expect("one row");
        (row.get(0), row.get(1))
    };
    let since = problem
        .strip_prefix("the high-water mark has been waiting for acknowledgment from a synchronous standby since ");
    let since = since.unwrap_or_else(|| panic!("{problem}"));
    let sane = format!("SELECT now() - '{since}'::timestamptz BETWEEN '0' AND '1 minute'");
    assert!(watcher.one::<bool>(&sane), "{problem}");
    assert_eq!(
        hint,
        "Check view \"pg_stat_replication\", or change \"synchronous_standby_names\" and reload the configuration."
    );
    // The session waits until the standby is back, and the status says so for as long as it does.
    thread::sleep(Duration::from_secs(1));
    assert!(watcher.one::<String>(state).starts_with("waiting"));
    pair.proxy.delay(Duration::ZERO);
    waiting.join().expect("the session goes on");
    assert_eq!(watcher.one::<String>(state), "issuing");
}

/// Several sessions wait for a standby that is unreachable. The log says so once, with the reason and with advice.
fn check_log(name: &str, like: fn(Builder) -> Builder) -> Result<(), String> {
    const LINE: &str = "WARNING:  snowflake_pg: the high-water mark has been waiting for acknowledgment from a synchronous standby since ";
    let pair = Pair::start(name, like);
    let mut sessions: Vec<_> = (0..3).map(|_| pair.primary.connect()).collect();
    // No session has waited for long before.
    sessions[0].batch(10);
    assert_eq!(pair.primary.log().matches(LINE).count(), 0);
    pair.proxy.hold();
    let pids: Vec<i32> = sessions.iter_mut().map(|session| session.one("SELECT pg_backend_pid()")).collect();
    let mut watcher = pair.primary.connect();
    let waiting: Vec<_> = sessions
        .into_iter()
        .map(|mut session| {
            let draw =
                "SELECT count(snowflake_nextval()) FROM generate_series(1, 10000) AS a, generate_series(1, 10000) AS b";
            thread::spawn(move || session.batch_execute(draw))
        })
        .collect();
    let told = within(SOON, || pair.primary.log().contains(LINE));
    // As many checks of the standby as one session makes in two seconds.
    thread::sleep(Duration::from_secs(2));
    for pid in pids {
        watcher.one::<bool>(&format!("SELECT pg_terminate_backend({pid})"));
    }
    waiting.into_iter().for_each(|session| drop(session.join().expect("a thread that ends")));
    let log = pair.primary.log();
    ensure!(told, "nothing is logged:\n{log}");
    let count = log.matches(LINE).count();
    ensure!(count == 1, "logged {count} times");
    let about = log.split_once(LINE).map_or("", |(_, rest)| rest);
    let lines: Vec<&str> = about.lines().take(3).collect();
    assert!(lines[1].contains("for a synchronous standby to flush WAL up to 0/"), "{lines:?}");
    assert!(lines[1].contains("Parameter \"synchronous_standby_names\" is \""), "{lines:?}");
    assert!(!lines[1].contains("is \"\"."), "{lines:?}");
    assert!(lines[2].contains("HINT:  Check view \"pg_stat_replication\""), "{lines:?}");
    Ok(())
}

#[test]
fn a_long_wait_for_the_standby_is_logged_once() {
    check_log("slow_logged", |server| server).unwrap();
}

#[test]
fn a_long_wait_that_every_session_logs_is_caught() {
    assert_caught(check_log("slow_talkative", |server| server.fault("TalkativeLog")), "times");
}
