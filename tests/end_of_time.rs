//! The ends of the time range: the last ID of the last tick, nothing after it, nothing before the epoch.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use cluster::{Answer, Builder, Cluster, assert_caught, check_increasing, ensure, sqlstate};

/// Seconds that 20 bits of one-second ticks last.
const RANGE: u128 = 1 << 20;

/// The epoch, in milliseconds since 1970, with which such a time ends in this many seconds, or up to one less.
fn epoch_ending_in(seconds: u128) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970").as_secs();
    ((u128::from(now) + seconds - RANGE) * 1_000).to_string()
}

/// Hazard 14: the epoch lies so that the time ends in a few seconds; IDs are drawn before, in and after the last tick.
fn check_end(builder: Builder) -> Result<(), String> {
    let mut server = builder.set("snowflake_pg.layout", "20:4:10@1s").set("snowflake_pg.max_ahead", "2ms").create();
    // Enough to start a server on a busy machine and be there before the last tick but one.
    server.set("snowflake_pg.epoch", &epoch_ending_in(7));
    server.start();
    let mut session = server.session();
    let last_id: i64 = (1 << 34) - 1;
    let mut ids = Vec::new();
    let deadline = Instant::now() + Duration::from_secs(30);
    let error = loop {
        ensure!(Instant::now() < deadline, "still issuing after {} IDs", ids.len());
        match session.query_one("SELECT snowflake_nextval()", &[]) {
            Ok(row) => ids.push(row.get::<_, i64>(0)),
            Err(error) => break sqlstate(&error),
        }
        // A tick has 1024 IDs: few enough a second that the time ends by the clock, not by the count.
        std::thread::sleep(Duration::from_millis(3));
        if ids.len() > 1 {
            check_increasing(&ids[ids.len() - 2..])?;
        }
    };
    ensure!(error.0 == "2200H", "refused with {error:?}");
    let ticks: Vec<i64> = ids.iter().map(|id| id >> 14).collect();
    let last_tick = RANGE as i64 - 1;
    ensure!(ticks.contains(&(last_tick - 1)) && ticks.contains(&last_tick), "the last ticks had no IDs: {ticks:?}");
    ensure!(ids.iter().all(|id| (1..=last_id).contains(id)), "an ID beyond the layout");
    // It stays so, for every way to draw, and the session goes on.
    for sql in ["SELECT snowflake_nextval()", "SELECT snowflake_nextval_batch(5)", "SELECT snowflake_reserve(5)"] {
        let error = session.batch_execute(sql).err().map(|e| sqlstate(&e).0);
        ensure!(error.as_deref() == Some("2200H"), "{sql} after the end gave {error:?}");
    }
    ensure!(session.one::<i32>("SELECT 1") == 1, "the session ended");
    Ok(())
}

#[test]
fn after_the_last_tick_comes_an_error() {
    check_end(Cluster::builder("end_of_time")).unwrap();
}

#[test]
fn a_silent_wrap_at_the_end_is_caught() {
    assert_caught(check_end(Cluster::builder("end_of_time_fault").fault("SilentWrap")), "in one session");
}

#[test]
fn the_last_sequence_number_of_the_last_tick_is_issued_and_nothing_after_it() {
    let mut server = Cluster::builder("last_id")
        .set("snowflake_pg.layout", "20:4:4@1s")
        .set("snowflake_pg.max_ahead", "10s")
        .set("snowflake_pg.worker_id", "15")
        .create();
    server.set("snowflake_pg.epoch", &epoch_ending_in(9));
    server.start();
    let mut session = server.session();
    // Sixteen to a tick, and the end within the run-ahead: all that are left come at once.
    let mut ids = Vec::new();
    while let Ok(row) = session.query_one("SELECT snowflake_nextval()", &[]) {
        ids.push(row.get::<_, i64>(0));
    }
    assert_eq!(ids.last(), Some(&((1 << 28) - 1)));
    check_increasing(&ids).unwrap();
    assert_eq!(session.refusal("SELECT snowflake_nextval()").0, "2200H");
}

#[test]
fn before_the_epoch_nothing_is_issued() {
    let mut server = Cluster::builder("before_epoch").set("snowflake_pg.epoch", "2199-01-01T00:00:00Z").start();
    let mut session = server.session();
    let error = sqlstate(&session.batch_execute("SELECT snowflake_nextval()").unwrap_err());
    assert_eq!((error.0.as_str(), error.1.as_str()), ("55000", "the clock is before the epoch"));
    assert_eq!(error.2, "The epoch is 2199-01-01T00:00:00+00:00.");
    assert_eq!(error.3, "Set the server's clock; if it is right, set an earlier snowflake_pg.epoch.");
    drop(session);
    server.set("snowflake_pg.epoch", "2020-01-01T00:00:00Z");
    server.restart(cluster::Stop::Fast);
    assert!(server.session().one::<i64>("SELECT snowflake_nextval()") > 0);
}
