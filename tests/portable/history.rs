//! The portable functions never issue an ID twice: the history of sessions that draw while statements are cancelled, sessions are
//! terminated and killed, the server crashes and the clock is stepped.

use std::thread;
use std::time::{Duration, Instant};

use cluster::{Answer, Ask, Chance, Cluster, Load, Stop, assert_caught_by_chance, ensure, major, rounds};

use crate::server::{install, mistaken, plain_builder, script};

/// What happens to the sessions and to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Interruption {
    /// Statements are cancelled and sessions are terminated. The clock is stepped.
    Cancel,
    /// A session is killed.
    Kill,
    /// The server is stopped without a checkpoint.
    Immediate,
}

const ALL: &[Interruption] = &[Interruption::Cancel, Interruption::Kill, Interruption::Cancel, Interruption::Immediate];

/// A server without the library whose writes survive a power loss, whose background writer flushes as late as possible, and whose clock
/// can be stepped.
fn durable(name: &str, script: &str) -> Cluster {
    let server = plain_builder(name)
        .set("fsync", "on")
        .set("wal_writer_delay", "10s")
        .set("wal_writer_flush_after", "512MB")
        .set("synchronous_commit", "off")
        .clock("+0")
        .start();
    let mut session = server.connect();
    // Without a flush of the mark, nothing else flushes this.
    session.run("SET synchronous_commit = on");
    install(&mut session, script, &[]).expect("the script runs");
    session.run("SELECT snowflake_configure(7); CREATE TABLE load_rows (id bigint DEFAULT snowflake_nextval())");
    server
}

/// Cancels and terminates random sessions, and steps the clock in between.
fn disturb(server: &Cluster, chance: &mut Chance, clock: &mut i64) {
    let mut session = server.connect();
    for _ in 0..25 {
        if chance.one_in(4) {
            step(server, chance, clock, Duration::ZERO);
        }
        let end = if chance.one_in(10) { "pg_terminate_backend" } else { "pg_cancel_backend" };
        let query = format!(
            "SELECT {end}(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
             ORDER BY random() LIMIT 1"
        );
        session.run(&query);
        thread::sleep(chance.millis(30));
    }
}

fn step(server: &Cluster, chance: &mut Chance, clock: &mut i64, outage: Duration) {
    *clock = (*clock + chance.step(outage)).clamp(-7_200_000, 7_200_000);
    server.set_clock(&format!("{:+.3}", *clock as f64 / 1e3));
}

/// Lets sessions draw while these events happen in turn, and checks the IDs that they received.
fn check(
    (name, script): (&str, &str),
    sessions: usize,
    asks: &'static [Ask],
    (events, times): (&[Interruption], u64),
    at_least: usize,
) -> Result<(), String> {
    let mut chance = Chance::of(name);
    let mut server = durable(name, script);
    let load = Load::start(&server, sessions, asks, "");
    let mut clock = 0;
    // The length of the last outage. Without it, the clock of a slow machine would pass all issued times while the server starts.
    let mut outage = Duration::ZERO;
    for event in events.iter().cycle().take(times as usize) {
        thread::sleep(Duration::from_millis(150) + chance.millis(200));
        let begun = Instant::now();
        match event {
            Interruption::Cancel => disturb(&server, &mut chance, &mut clock),
            Interruption::Kill => {
                ensure!(server.kill_session(&mut chance), "nobody to kill");
                step(&server, &mut chance, &mut clock, outage);
                server.wait_until_back();
                outage = begun.elapsed();
            }
            Interruption::Immediate => {
                server.stop(Stop::Immediate);
                step(&server, &mut chance, &mut clock, outage);
                server.start();
                outage = begun.elapsed();
            }
        }
    }
    thread::sleep(Duration::from_millis(500));
    let history = load.finish();
    println!("{name}: {} IDs, errors {:?}, slowest {:?}", history.len(), history.errors, history.slowest);
    let free = "SELECT count(*) FROM pg_locks WHERE locktype = 'relation' AND relation = 'public_state.snowflake_portable_lock'::regclass";
    let held: i64 = server.connect().one(free);
    ensure!(held == 0, "{held} locks outlive their statements");
    history.check(at_least)
}

#[test]
fn no_id_comes_twice_without_the_library() {
    let script = script("history");
    let asks = &[Ask::Nextval, Ask::Many, Ask::Batch, Ask::Reserve, Ask::Insert, Ask::Rollback];
    let (times, least) = (rounds(250, 5), rounds(1_000_000, 30_000) as usize);
    check(("history", &script), 16, asks, (ALL, times), least).unwrap();
}

#[test]
fn an_id_that_no_commit_has_flushed_does_not_come_again() {
    let events = &[Interruption::Immediate, Interruption::Kill];
    // WAL is flushed in one way before PostgreSQL 17, and in a different way since then. A few crashes show that each way works.
    let times = if major() == "15" { rounds(40, 6) } else { 6 };
    check(("unflushed", &script("unflushed")), 6, Ask::READING, (events, times), 500).unwrap();
}

#[test]
fn a_mark_that_is_not_flushed_without_the_library_is_caught() {
    let script = mistaken("unflushed_mark", &[("PERFORM snowflake_portable_flush();", "")]);
    let run = || check(("unflushed_mark", &script), 6, Ask::READING, (&[Interruption::Immediate], 8), 100);
    assert_caught_by_chance(run, "came twice");
}

#[test]
fn a_state_that_begins_at_the_clock_is_caught() {
    let mistake = ("coalesce(pg_sequence_last_value('snowflake_portable_mark'), 0)", "0");
    let script = mistaken("at_the_clock", &[mistake]);
    let run = || check(("at_the_clock", &script), 6, Ask::ALL, (&[Interruption::Kill], 8), 100);
    assert_caught_by_chance(run, "came twice");
}

/// A session that moves the state without the lock, and pauses between reading and writing it, lowers it. The pause is a computation,
/// because `pg_sleep` waits for as long as the test sets the clock back.
#[test]
fn a_push_without_a_lock_is_caught() {
    let now = "now := snowflake_portable_now();";
    let pause = format!("{now} PERFORM count(*) FROM generate_series(1, (random() * 50000)::int);");
    let script = mistaken(
        "unlocked",
        &[
            ("LOCK TABLE snowflake_portable_lock IN SHARE UPDATE EXCLUSIVE MODE NOWAIT;", "NULL;"),
            ("LOCK TABLE snowflake_portable_lock IN SHARE UPDATE EXCLUSIVE MODE;", "NULL;"),
            (now, &pause),
        ],
    );
    let run = || check(("unlocked", &script), 16, Ask::ALL, (&[Interruption::Cancel], 2), 100);
    assert_caught_by_chance(run, "came");
}
