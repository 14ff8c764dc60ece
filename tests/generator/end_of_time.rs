//! The end of the time range: the last ID of the last tick is issued, and no ID after it.

use std::time::{SystemTime, UNIX_EPOCH};

use cluster::{Answer, Builder, Cluster, Stop, assert_caught, check_increasing, command, ensure, output, sqlstate};

/// How many seconds 20 bits of one-second ticks last.
const RANGE: u128 = 1 << 20;

/// Starts the server with its clock stopped in a tick of one second, and draws an ID there. Retries if the machine was so busy
/// that generator time, which also follows the monotonic clock, had passed the tick. A running server would not follow such steps
/// of its clock.
fn draw_in(server: &mut Cluster, tick: i64) -> Result<i64, String> {
    for _ in 0..20 {
        server.stop(Stop::Immediate);
        let seconds = format!("@{}", EPOCH as i64 + tick);
        server.set_clock(&output(command("date").args(["+%F %T", "--date", &seconds])));
        server.start();
        match server.session().query_one("SELECT snowflake_nextval()", &[]) {
            Ok(row) if row.get::<_, i64>(0) >> 14 == tick => return Ok(row.get(0)),
            Ok(row) if row.get::<_, i64>(0) >> 14 < tick => {
                return Err(format!("the ID {} is not of tick {tick}", row.get::<_, i64>(0)));
            }
            Ok(_) => {}
            Err(error) if sqlstate(&error).0 == "2200H" && (tick as u128) < RANGE => {}
            Err(error) => return Err(sqlstate(&error).0),
        }
    }
    Err(format!("never in time for tick {tick}"))
}

/// 2026-01-01, in seconds since 1970.
const EPOCH: u64 = 1_767_225_600;

/// Draws IDs shortly before the last tick, in it, and after it.
fn check_end(builder: Builder) -> Result<(), String> {
    let mut server = builder
        .set("snowflake_pg.layout", "20:4:10@1s")
        .set("snowflake_pg.epoch", &(EPOCH * 1_000).to_string())
        .clock("+0")
        .create();
    let last_tick = RANGE as i64 - 1;
    let mut ids = Vec::new();
    // The ticks are further apart than a window, because each start loses one.
    for tick in [last_tick - 10, last_tick] {
        ids.push(draw_in(&mut server, tick)?);
    }
    for _ in 0..2 {
        match draw_in(&mut server, last_tick + 1) {
            Ok(id) => return Err(format!("{id} was issued after the last tick")),
            Err(refusal) => ensure!(refusal == "2200H", "after the last tick: {refusal}"),
        }
    }
    check_increasing(&ids)?;
    ensure!(ids.iter().all(|id| (1..1 << 34).contains(id)), "an ID beyond the layout: {ids:?}");
    let mut session = server.session();
    // Each way to draw gives the error, and the session continues.
    for sql in ["SELECT snowflake_nextval()", "SELECT snowflake_nextval_batch(5)", "SELECT snowflake_reserve(5)"] {
        let error = session.code(sql);
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
    assert_caught(check_end(Cluster::builder("end_of_time_fault").fault("SilentWrap")), "is not of tick");
}

/// The epoch, in milliseconds since 1970, with which a range of this many milliseconds ends in eight to nine seconds.
fn epoch_ending_soon(range_ms: u128) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970").as_secs();
    ((u128::from(now) + 9) * 1_000 - range_ms).to_string()
}

/// All remaining IDs come at once, up to `last`, and none after it. There are few, 16 to a tick, because the end is within the
/// run-ahead. `node_bits` is the width of the node, which gives the distance between ticks.
fn check_last_id(builder: Builder, layout: &str, node_bits: u32, range_ms: u128, last: i64) -> Result<(), String> {
    let worker = (1 << node_bits) - 1;
    let mut server = builder
        .set("snowflake_pg.layout", layout)
        .set("snowflake_pg.max_ahead", "10s")
        .set("snowflake_pg.worker_id", &worker.to_string())
        .create();
    server.set("snowflake_pg.epoch", &epoch_ending_soon(range_ms));
    server.start();
    let mut session = server.session();
    let mut issued = 0;
    // A batch that does not end before the layout does is lost, so batches become smaller, and the last IDs are drawn one by one.
    let count = |issued| match (last - issued) >> (node_bits + 4) {
        _ if issued == 0 => 1,
        100.. => 1_000,
        10.. => 100,
        _ => 1,
    };
    let draw = session.prepare("SELECT snowflake_nextval_batch($1)").expect("the function exists");
    while let Ok(rows) = session.query(&draw, &[&count(issued)]) {
        for id in rows.iter().map(|row| row.get::<_, i64>(0)) {
            ensure!(issued < id && id <= last, "{id} was issued after {issued}");
            issued = id;
        }
    }
    ensure!(issued == last, "the last ID is {issued}, not {last}");
    let refusal = session.refusal("SELECT snowflake_nextval()").0;
    ensure!(refusal == "2200H", "after the last ID: {refusal}");
    let read: bool = session.one(&format!(
        "SELECT worker_id = {worker} AND sequence = 15 AND snowflake_last_id_before('infinity') = {last}
         FROM snowflake_decode({last})"
    ));
    ensure!(read, "the last ID is read otherwise");
    Ok(())
}

#[test]
fn the_last_sequence_number_of_the_last_tick_is_issued_and_nothing_after_it() {
    check_last_id(Cluster::builder("last_id"), "20:4:4@1s", 4, RANGE * 1_000, (1 << 28) - 1).unwrap();
}

/// All 63 bits are in use, so the next number would be negative.
#[test]
fn the_largest_bigint_is_an_id_and_nothing_wraps_after_it() {
    check_last_id(Cluster::builder("largest_id"), "40:19:4", 19, 1 << 40, i64::MAX).unwrap();
}

#[test]
fn a_wrap_into_the_sign_is_caught() {
    let builder = Cluster::builder("largest_id_fault").fault("SilentWrap");
    assert_caught(check_last_id(builder, "40:19:4", 19, 1 << 40, i64::MAX), "was issued after 9223372036854775807");
}
