//! A container that is restored on another host: its monotonic clock starts from another value, and issuing continues at once.

use std::thread;
use std::time::{Duration, Instant};

use cluster::{Answer, Builder, Cluster, SOON, assert_caught, check_increasing, ensure};

/// Draws IDs before and after all clocks of a server are set by `step`, in seconds.
fn check_restored(builder: Builder, step: &str) -> Result<(), String> {
    let (mut server, mut session) = builder.clocks("+0").set("log_min_messages", "debug1").start_session();
    let mut ids = session.batch(20_000);
    // Long enough for the reservation to be extended, and so for the clocks to be compared.
    thread::sleep(Duration::from_millis(700));
    ids.extend(session.batch(20_000));
    server.set_clock(step);
    let begun = Instant::now();
    session.run("SET statement_timeout = '30s'");
    match session.query("SELECT snowflake_nextval_batch(20000)", &[]) {
        Ok(rows) => ids.extend(rows.iter().map(|row| row.get::<_, i64>(0))),
        Err(error) => return Err(format!("no IDs: {error:?}")),
    }
    let took = begun.elapsed();
    for _ in 0..20 {
        ids.push(session.one("SELECT snowflake_nextval()"));
        thread::sleep(Duration::from_millis(100));
    }
    let state: String = session.one("SELECT state FROM snowflake_status");
    server.stop(cluster::Stop::Immediate);
    check_increasing(&ids)?;
    ensure!(took < SOON, "the first ID after it took {took:?}");
    ensure!(state == "issuing", "the status says {state}");
    let told = server.log().matches("snowflake_pg: the monotonic clock has gone backward by").count();
    ensure!(told == 1, "the log says {told} times that the monotonic clock went back");
    Ok(())
}

#[test]
fn issuing_goes_on_after_the_monotonic_clock_went_back() {
    // The wall clock goes back too, so that IDs lead it. An hour is longer than any session waits.
    check_restored(Cluster::builder("restored"), "-3600").unwrap();
}

#[test]
fn a_generator_that_does_not_notice_is_caught() {
    let like = Cluster::builder("restored_unnoticed").fault("RestoreUnnoticed");
    assert_caught(check_restored(like, "-3600"), "no IDs");
}
