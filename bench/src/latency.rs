//! The duration of single calls as measured inside the server, while the high-water mark is extended.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cluster::{Client, Cluster};

use crate::effort::{alternate, rounds, scaled, steps};
use crate::report::{Figure, group};
use crate::server::{self, timed};
use crate::sessions::{AXIS, Sessions};
use crate::stats::{Histogram, Sample};

/// The number of rounds for each number of sessions.
const ROUNDS: usize = 7;
/// The number of calls that the sessions of one run make together. This is enough for several extensions of the mark.
const CALLS: u64 = 3_000_000;
/// The numbers of sessions.
const SESSIONS: [usize; 4] = [1, 2, 8, 64];
/// The expressions that are called between two reads of the clock.
const RIVALS: [&str; 2] = ["snowflake_nextval()", "clock_timestamp()"];

/// The names and units of the figures of one run, in the order of [`CallTimes::figures`].
const FIGURES: [(&str, &str); 7] = [
    ("latency inside the function, p50", "µs"),
    ("latency inside the function, p99", "µs"),
    ("latency inside the function, p99.9", "µs"),
    ("latency inside the function, slowest call", "µs"),
    ("slowest call of 100 ms, median", "µs"),
    ("slowest call of 100 ms, 90th percentile", "µs"),
    ("extensions of the mark", "per turn"),
];

/// The calls of one or more sessions.
#[derive(Default)]
struct CallTimes {
    /// The number of calls for each duration in microseconds.
    micros: Histogram,
    /// The slowest call in each period of 100 ms.
    slowest: BTreeMap<i64, i64>,
}

/// The pause between the IDs that an additional session draws during the whole measurement. These draws keep the window as short
/// as it is under load, so that the mark is extended twice a second, even after a run of `clock_timestamp()`.
const HEARTBEAT: Duration = Duration::from_millis(25);

/// Measures calls on a server with a layout that never throttles.
pub fn run(server: &Cluster) -> Vec<Figure> {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut client = server::session(server);
            while !done.load(Ordering::Relaxed) {
                timed(&mut client, "SELECT snowflake_nextval()");
                std::thread::sleep(HEARTBEAT);
            }
        });
        // A panic must also end the other thread, because the scope waits for it.
        let figures = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| measure(server)));
        done.store(true, Ordering::Relaxed);
        figures.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn measure(server: &Cluster) -> Vec<Figure> {
    let counts = steps(&SESSIONS);
    let mut sessions = Sessions::open(server, *counts.last().expect("numbers of sessions"));
    let rounds = rounds(ROUNDS);
    let mut figures = Vec::new();
    for count in counts {
        println!("==> latency inside the function, {count} sessions, {rounds} rounds");
        let each = (scaled(CALLS) / *count as u64).max(1);
        let measured = alternate(rounds, RIVALS.len(), |n| {
            let sql = statement(RIVALS[n], each);
            let warm = statement(RIVALS[n], 1_000);
            let before = sessions.counted();
            let (_, found) = sessions.at_once(*count, |client| _ = timed(client, &warm), |client| ask(client, &sql));
            let extensions = sessions.counted().extensions - before.extensions;
            found.into_iter().fold(CallTimes::default(), CallTimes::with).figures(extensions)
        });
        for ((name, unit), samples) in FIGURES.iter().zip(&measured) {
            let extensions = *unit == "per turn";
            // `clock_timestamp()` extends nothing.
            let rivals = if extensions { 1 } else { RIVALS.len() };
            if sessions.counts() || !extensions {
                let turn = format!("{} calls", group(each * *count as u64));
                let figure = Figure::new(name, unit, &turn, &RIVALS[..rivals], &samples[..rivals]);
                figures.push(figure.at(AXIS, *count as u64));
            }
        }
    }
    figures
}

/// Returns a statement that counts calls by the 100 ms in which they began and by their duration in microseconds.
fn statement(expression: &str, calls: u64) -> String {
    // OFFSET prevents the planner from removing or moving the call between the two reads of the clock.
    format!(
        "SELECT floor(date_part('epoch', began) * 10)::bigint, date_part('microseconds', ended - began)::bigint, count(made)
         FROM (SELECT clock_timestamp() AS began, {expression} AS made, clock_timestamp() AS ended
               FROM generate_series(1, {calls}) OFFSET 0) AS call
         GROUP BY 1, 2"
    )
}

fn ask(client: &mut Client, sql: &str) -> CallTimes {
    let mut found = CallTimes::default();
    for row in client.query(sql, &[]).unwrap_or_else(|e| panic!("{sql}: {e:?}")) {
        let (slice, micros, calls): (i64, i64, i64) = (row.get(0), row.get(1), row.get(2));
        found.micros.add(micros, calls.unsigned_abs());
        found.see(slice, micros);
    }
    found
}

impl CallTimes {
    fn see(&mut self, slice: i64, micros: i64) {
        let slowest = self.slowest.entry(slice).or_default();
        *slowest = micros.max(*slowest);
    }

    fn with(mut self, other: CallTimes) -> CallTimes {
        self.micros.merge(&other.micros);
        other.slowest.into_iter().for_each(|(slice, micros)| self.see(slice, micros));
        self
    }

    fn figures(&self, extensions: i64) -> [f64; FIGURES.len()] {
        let slowest: Sample = self.slowest.values().map(|micros| *micros as f64).collect();
        [
            self.micros.quantile(0.5),
            self.micros.quantile(0.99),
            self.micros.quantile(0.999),
            self.micros.quantile(1.0),
            slowest.median(),
            slowest.quantile(0.9),
            extensions as f64,
        ]
    }
}
