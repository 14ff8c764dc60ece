//! A session that draws at full speed stays within `max_ahead`, and waits only when it must.

use std::thread;
use std::time::Duration;

use cluster::{Answer, Builder, Cluster, assert_caught, assert_caught_by_chance, ensure, within};

/// The largest lead over the clock, in milliseconds, of IDs drawn one after the other at full speed. OFFSET 0 prevents the planner
/// from drawing another ID for each reference to one.
const LEAD: &str = "SELECT max(extract(epoch FROM snowflake_timestamp(id) - clock_timestamp()))::float8 * 1000
    FROM (SELECT snowflake_nextval() AS id FROM generate_series(1, 20000) OFFSET 0) AS ids";

/// How far apart, in milliseconds, the server's readings of its two clocks can be. The server can take the wall clock to be ahead
/// by this much.
const APART: f64 = 1.0;

/// Sessions that draw as fast as they can run ahead of the clock by `max_ahead`, and no further.
fn check_lead(builder: Builder) -> Result<(), String> {
    // 64 IDs to a tick are far fewer than a session can draw.
    let server = builder.set("snowflake_pg.layout", "41:16:6").set("snowflake_pg.max_ahead", "100ms").start();
    let mut lead = f64::MIN;
    // On a busy machine, they may draw too slowly for a while.
    let led = within(Duration::from_secs(60), || {
        let draw = |_| {
            let mut session = server.session();
            thread::spawn(move || session.one::<f64>(LEAD))
        };
        let sessions: Vec<_> = (0..4).map(draw).collect();
        let leads = sessions.into_iter().map(|session| session.join().expect("a session that lasts"));
        lead = leads.fold(lead, f64::max);
        lead >= 50.0
    });
    ensure!(lead <= 100.0 + APART, "the lead reached {lead} ms");
    ensure!(led, "the lead reached only {lead} ms: nothing was shown");
    // A batch exceeds the limit by one tick at most.
    let mut session = server.session();
    let lead: f64 = session.one(
        "SELECT max(extract(epoch FROM snowflake_timestamp(id) - clock_timestamp()))::float8 * 1000
         FROM (SELECT snowflake_nextval_batch(20000) AS id OFFSET 0) AS ids",
    );
    ensure!(lead <= 101.0 + APART, "a batch's lead reached {lead} ms");
    Ok(())
}

#[test]
fn the_lead_is_bounded_by_max_ahead() {
    check_lead(Cluster::builder("lead")).unwrap();
}

#[test]
fn an_unbounded_lead_is_caught() {
    assert_caught(check_lead(Cluster::builder("lead_fault").fault("UnboundedLead")), "the lead reached");
}

/// No session waits below the capacity of the layout, however many sessions contend and however often the scheduler takes the
/// processor from one between two instructions.
fn check_false_waits(builder: Builder) -> Result<(), String> {
    // Four million IDs to a tick are more than any machine draws.
    let mut server = builder
        .set("snowflake_pg.layout", "40:1:22")
        .set("snowflake_pg.max_ahead", "2ms")
        .set("log_min_messages", "debug1")
        .start();
    // Several sessions to a processor, so that some lose it between the two reads.
    let count = (8 * thread::available_parallelism().map_or(2, usize::from)).min(80);
    let sessions: Vec<_> = (0..count)
        .map(|_| {
            let mut session = server.session();
            thread::spawn(move || {
                session.one::<i64>("SELECT count(snowflake_nextval()) FROM generate_series(1, 600000)")
            })
        })
        .collect();
    for session in sessions {
        session.join().expect("a session that lasts");
    }
    server.stop(cluster::Stop::Fast);
    let log = server.log();
    ensure!(log.contains("DEBUG"), "the log does not show debug messages");
    let waits = log.matches("snowflake_pg: throttled").count();
    ensure!(waits == 0, "{waits} waits below the capacity");
    Ok(())
}

#[test]
fn nobody_waits_below_the_capacity() {
    check_false_waits(Cluster::builder("false_waits")).unwrap();
}

#[test]
fn a_clock_read_before_the_state_is_caught() {
    let check = || check_false_waits(Cluster::builder("false_waits_fault").fault("ClockBeforeState"));
    assert_caught_by_chance(check, "waits below");
}

#[test]
fn max_ahead_changes_with_a_reload() {
    let mut server = Cluster::builder("reload").set("snowflake_pg.layout", "41:16:6").start();
    assert!(within(Duration::from_secs(60), || server.session().one::<f64>(LEAD) > 50.0), "nothing is ahead");
    server.set("snowflake_pg.max_ahead", "5ms");
    server.reload();
    let changed = || server.session().one::<String>("SHOW snowflake_pg.max_ahead") == "5ms";
    assert!(within(Duration::from_secs(10), changed), "the reload has no effect");
    thread::sleep(Duration::from_millis(150));
    assert!(server.session().one::<f64>(LEAD) <= 5.0 + APART);
}
