//! All faults at once, in random order, for any length of time: eight seconds in `make test`, twenty in `make ci`, an hour with
//! `make soak SECONDS=3600`.

use std::thread;
use std::time::{Duration, Instant};

use cluster::{Answer, Ask, Chance, Cluster, Load, Stop, rounds};

/// How long the test runs.
fn duration() -> Duration {
    let asked = std::env::var("SOAK_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(asked.unwrap_or_else(|| rounds(20, 8)))
}

/// The offset of the server's clock from the true time, in milliseconds. It stays within two hours, because a mark a day ahead
/// would be refused.
struct ClockOffset(i64);

impl ClockOffset {
    fn step(&mut self, server: &Cluster, by: i64) {
        self.0 = (self.0 + by).clamp(-7_200_000, 7_200_000);
        server.set_clock(&format!("{:+.3}", self.0 as f64 / 1e3));
    }
}

/// Causes one random fault.
fn happen(server: &mut Cluster, clock: &mut ClockOffset, chance: &mut Chance) -> &'static str {
    match chance.between(0, 9) {
        0 => {
            server.kill_session(chance);
            clock.step(server, chance.step(Duration::ZERO));
            server.wait_until_back();
            "a session was killed"
        }
        1 => {
            server.kill_postmaster();
            clock.step(server, chance.step(Duration::ZERO));
            server.start();
            "the postmaster was killed"
        }
        2 => {
            server.stop(Stop::Immediate);
            clock.step(server, chance.step(Duration::ZERO));
            server.start();
            "the server was stopped at once"
        }
        3 => {
            for _ in 0..10 {
                let by = chance.between(-5_000, 5_000);
                clock.step(server, by);
                thread::sleep(chance.millis(30));
                clock.step(server, -by);
            }
            "the clock flickered"
        }
        4 => {
            let mut holder = server.connect();
            let hold = "BEGIN; LOCK TABLE pg_replication_origin IN EXCLUSIVE MODE";
            holder.run(hold);
            thread::sleep(chance.millis(1_500));
            "the catalog of origins was locked"
        }
        5 => {
            server.freeze();
            thread::sleep(chance.millis(1_500));
            server.thaw();
            "the server was frozen"
        }
        6 => {
            // Sessions get errors meanwhile. The IDs that they have received stay in the history.
            let mut other = server.connect();
            let again = "DROP EXTENSION snowflake_pg CASCADE; CREATE EXTENSION snowflake_pg;
                         ALTER TABLE load_rows ALTER id SET DEFAULT snowflake_nextval()";
            let _ = other.batch_execute(again);
            let _ = other.batch_execute("CHECKPOINT");
            "the extension was made anew"
        }
        7 => {
            let pids: Vec<i32> = server.connect().all("SELECT pid FROM pg_stat_activity WHERE state = 'active'");
            let function = *chance.pick(&["pg_cancel_backend", "pg_terminate_backend"]);
            let sql = format!("SELECT {function}({}) WHERE pg_backend_pid() <> $1", chance.pick(&pids));
            let _ = server.connect().query(&sql, &[&0]);
            "a session was cancelled or terminated"
        }
        _ => {
            clock.step(server, chance.step(Duration::ZERO));
            "the clock was set"
        }
    }
}

#[test]
fn no_id_comes_twice_whatever_happens() {
    let mut chance = Chance::of("soak");
    let mut server = Cluster::builder("soak").set("fsync", "on").set("wal_writer_delay", "10s").clock("+0").start();
    Load::prepare(&server);
    let load = Load::start(&server, 6, Ask::ALL, "");
    let (begun, mut clock, mut happened) = (Instant::now(), ClockOffset(0), std::collections::BTreeMap::new());
    while begun.elapsed() < duration() {
        let what = happen(&mut server, &mut clock, &mut chance);
        *happened.entry(what).or_insert(0) += 1;
        thread::sleep(chance.millis(600));
    }
    thread::sleep(Duration::from_secs(1));
    let history = load.finish();
    println!("soak: {} IDs; {happened:#?}; errors {:#?}", history.len(), history.errors);
    history.check(1_000).unwrap();
}
