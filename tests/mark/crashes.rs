//! No duplicates across crashes, if the clock is stepped while the server is down.

use std::thread;
use std::time::{Duration, Instant};

use cluster::{Ask, Builder, Chance, Cluster, Load, Stop, assert_caught_by_chance, ensure, rounds};

/// How a server ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Crash {
    Session,
    Postmaster,
    Immediate,
}

/// A server whose writes survive a power loss, whose background writer flushes as late as possible, and whose clock can be
/// stepped. (From 17 on, a background writer that flushes after 0 blocks is woken by every commit.)
fn durable(builder: Builder) -> Builder {
    builder.set("fsync", "on").set("wal_writer_delay", "10s").set("wal_writer_flush_after", "512MB").clock("+0")
}

/// Lets sessions draw while the server crashes `times` times in this way, and checks the IDs that they received.
fn check_crashes(name: &str, builder: Builder, crash: Crash, times: u64, asks: &'static [Ask]) -> Result<(), String> {
    let mut chance = Chance::of(name);
    let mut server = durable(builder).start();
    Load::prepare(&server);
    let load = Load::start(&server, 6, asks, "");
    let mut clock: i64 = 0;
    // The length of the last outage. Without it, the clock of a slow machine would pass all issued times while the server starts.
    let mut outage = Duration::ZERO;
    for _ in 0..times {
        thread::sleep(Duration::from_millis(300) + chance.millis(500));
        // Within two hours of the true time, because a mark a day ahead would be refused.
        let step = chance.step(outage);
        clock = (clock + step).clamp(-7_200_000, 7_200_000);
        let offset = format!("{:+.3}", clock as f64 / 1e3);
        let begun = Instant::now();
        match crash {
            Crash::Session => {
                ensure!(server.kill_session(&mut chance), "nobody to kill");
                server.set_clock(&offset);
                server.wait_until_back();
            }
            Crash::Postmaster => {
                server.kill_postmaster();
                server.set_clock(&offset);
                server.start();
            }
            Crash::Immediate => {
                server.restart_at(Stop::Immediate, &offset);
            }
        }
        outage = begun.elapsed();
    }
    thread::sleep(Duration::from_millis(500));
    let history = load.finish();
    println!("{name}: {} IDs, errors {:?}, slowest {:?}", history.len(), history.errors, history.slowest);
    history.check(times as usize * 100)
}

#[test]
fn after_kills_of_backends_no_id_comes_twice() {
    check_crashes("kill_sessions", Cluster::builder("kill_sessions"), Crash::Session, rounds(20, 8), Ask::ALL).unwrap();
}

#[test]
fn after_kills_of_the_postmaster_no_id_comes_twice() {
    check_crashes("kill_postmaster", Cluster::builder("kill_postmaster"), Crash::Postmaster, rounds(10, 5), Ask::ALL)
        .unwrap();
}

#[test]
fn after_immediate_stops_no_id_comes_twice() {
    check_crashes("immediate", Cluster::builder("immediate"), Crash::Immediate, rounds(10, 5), Ask::ALL).unwrap();
}

#[test]
fn sequences_of_postgresql_are_caught() {
    let check = || check_crashes("sequence", Cluster::builder("sequence"), Crash::Immediate, 5, &[Ask::Sequence]);
    assert_caught_by_chance(check, "came twice");
}

#[test]
fn a_mark_that_is_not_loaded_is_caught() {
    for (name, crash) in [("unloaded_kill", Crash::Session), ("unloaded_stop", Crash::Immediate)] {
        let builder = || Cluster::builder(name).fault("MarkNotLoaded");
        assert_caught_by_chance(|| check_crashes(name, builder(), crash, 15, Ask::ALL), "came twice");
    }
}

#[test]
fn a_mark_written_behind_is_caught() {
    let builder = || Cluster::builder("mark_behind").fault("MarkBehind");
    let check = || check_crashes("mark_behind", builder(), Crash::Immediate, 10, Ask::ALL);
    assert_caught_by_chance(check, "came twice");
}

#[test]
fn a_mark_that_counts_before_its_flush_is_caught() {
    let builder = || Cluster::builder("before_flush").fault("PublishBeforeFlush");
    let check = || check_crashes("before_flush", builder(), Crash::Immediate, 10, Ask::READING);
    assert_caught_by_chance(check, "came twice");
}
