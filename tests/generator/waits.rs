//! A waiting session shows its reason in `pg_stat_activity`, in `snowflake_stat_backends` and in the log.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use cluster::{Answer, Builder, Cluster, SOON, Stop, assert_caught, ensure, wait_event, within};

/// Draws for longer than a test takes. It uses two functions, because all rows of one are made before the first is read.
const DRAW: &str =
    "SELECT count(snowflake_nextval()) FROM generate_series(1, 10000) AS a, generate_series(1, 1000000) AS b";

/// How [`DRAW`] waits on this server: `waiting_for`, the name of the wait event, and the line in the log.
fn check_wait(mut server: Cluster, what: &str, event: &'static str, line: &str) -> Result<(), String> {
    let mut watcher = server.session();
    let mut session = server.connect();
    let pid: i32 = session.one("SELECT pg_backend_pid()");
    let drawing = thread::spawn(move || session.batch_execute(DRAW));
    let event = wait_event(event);
    let shown = format!(
        "SELECT count(*) = 1 FROM pg_stat_activity JOIN snowflake_stat_backends USING (pid)
         WHERE pid = {pid} AND waiting_for = '{what}' AND wait_event_type = 'Extension' AND wait_event = '{event}'"
    );
    let found = within(SOON, || watcher.one(&shown));
    let activity: Vec<String> = watcher.all(&format!(
        "SELECT coalesce(waiting_for, 'nothing') || ' ' || coalesce(wait_event_type || ' ' || wait_event, 'nothing')
         FROM pg_stat_activity LEFT JOIN snowflake_stat_backends USING (pid) WHERE pid = {pid}"
    ));
    let counted = format!("SELECT {what}_waits > 0 AND {what}_time > 0 FROM snowflake_status");
    let counted = within(SOON, || watcher.one(&counted));
    watcher.one::<bool>(&format!("SELECT pg_terminate_backend({pid})"));
    let ended = drawing.join().expect("a thread that ends");
    let log = server.log();
    server.stop(Stop::Immediate);
    ensure!(found, "shown is {activity:?}, not {what} and {event}");
    ensure!(counted, "the waits for {what} are not counted");
    ensure!(ended.is_err(), "{DRAW} came to its end");
    ensure!(log.contains(&format!("snowflake_pg: {line}")), "the log does not say {line:?}:\n{log}");
    Ok(())
}

fn throttled(builder: Builder) -> Result<(), String> {
    let server = builder
        .set("log_min_messages", "debug1")
        .set("snowflake_pg.layout", "32:16:1@1s")
        .set("snowflake_pg.max_ahead", "10s")
        .start();
    check_wait(server, "throttled", "SnowflakeThrottled", "throttled, sleeping for")
}

#[test]
fn a_throttled_session_shows_it() {
    throttled(Cluster::builder("waits_throttled")).unwrap();
}

#[test]
fn a_wait_that_is_not_shown_is_caught() {
    assert_caught(throttled(Cluster::builder("waits_fault").fault("HiddenWait")), "shown is [\"throttled nothing\"]");
}

#[test]
fn a_session_that_waits_for_the_mark_shows_it() {
    let server = Cluster::builder("waits_mark")
        .set("log_min_messages", "debug1")
        .set("synchronous_standby_names", "nobody")
        .start();
    // Otherwise the commit of CREATE EXTENSION would wait too.
    let mut session = server.connect();
    session.run("SET synchronous_commit = local; CREATE EXTENSION snowflake_pg");
    check_wait(server, "mark", "SnowflakeMark", "waiting for the synchronous standby to acknowledge the mark").unwrap();
}

#[test]
fn a_session_that_waits_for_the_clock_shows_it() {
    let server = Cluster::builder("waits_clock")
        .clock("+0")
        .set("log_min_messages", "debug1")
        .set("snowflake_pg.on_clock_regression", "wait")
        .start();
    server.session().batch(10);
    server.set_clock("-9");
    check_wait(server, "clock", "SnowflakeClock", "waiting for the clock, which is behind by").unwrap();
}

#[test]
fn debug_levels_show_each_decision_of_the_slow_path_and_the_usual_level_none() {
    let decisions = [
        "extended the reservation to word",
        "extended the reservation in advance to word",
        "compared the clocks, generator time leads the wall clock by",
        "throttled, sleeping for",
    ];
    // A layout of 64,000 IDs a second, which any machine can exceed.
    let builder = Cluster::builder("waits_debug").set("snowflake_pg.layout", "41:16:6");
    let mut server = builder.set("log_min_messages", "debug2").start();
    let draw = |server: &Cluster| {
        server.session().batch_execute("SELECT count(snowflake_nextval()) FROM generate_series(1, 200000)")
    };
    draw(&server).expect("IDs");
    let log = server.log();
    for decision in decisions {
        assert!(log.contains(&format!("snowflake_pg: {decision}")), "the log does not say {decision:?}");
    }
    server.unset("log_min_messages");
    server.restart(Stop::Fast);
    draw(&server).expect("IDs");
    let log = server.log();
    assert!(log.contains("snowflake_pg: new IDs begin at") && !log.contains("DEBUG"), "{log}");
}

#[test]
fn a_session_that_waits_for_another_to_extend_says_so() {
    let server = Cluster::builder("waits_other").fault("SlowDisk").set("log_min_messages", "debug2").start();
    let line = "snowflake_pg: waiting for another session to extend the reservation";
    // While the disk takes two seconds, both sessions use up the reservation.
    let done = AtomicBool::new(false);
    let told = thread::scope(|scope| {
        for mut session in [server.session(), server.connect()] {
            let done = &done;
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    session.one::<i64>("SELECT snowflake_nextval()");
                }
            });
        }
        let told = within(SOON, || server.log().contains(line));
        done.store(true, Ordering::Relaxed);
        told
    });
    assert!(told, "{}", server.log());
}
