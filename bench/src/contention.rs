//! Many sessions that draw IDs as fast as they can: how many IDs they get, what each ID costs, and how often the sessions compete
//! for the same ID. The latencies of single calls are in [`crate::latency`].

use cluster::Answer;

use crate::effort::{alternate, rounds, scaled, steps};
use crate::latency;
use crate::machine::Machine;
use crate::report::{BenchReport, Figure, group};
use crate::rivals;
use crate::server::{self, timed};
use crate::sessions::{AXIS, Sessions};
use crate::stats::Sample;

/// The number of rounds. Each round measures every rival with every number of sessions.
const ROUNDS: usize = 7;
/// The number of IDs that the sessions of one run draw together. At the limit of the default layout, drawing them takes two
/// seconds. Compared with this, the 100 ms by which the lead can grow during a run are short.
const IDS: u64 = 8_000_000;
/// The number of IDs that the sessions draw before a run. With `max_ahead` = 100 ms, the default layout cannot run this far ahead
/// of the clock. Therefore, the run measures the rate that the clock allows.
const WARM: u64 = 600_000;
/// The approximate number of IDs drawn by one statement. generate_series produces all its rows before the first ID is drawn, and
/// this must not become a pause.
const PIECE: u64 = 20_000;
/// The numbers of sessions.
const SESSIONS: [usize; 4] = [1, 2, 8, 64];
/// The index in [`SESSIONS`] of the number with which the others are compared. With two or more sessions, both processors are
/// busy.
const REFERENCE: usize = 1;

/// The name, the expression, and whether the server has the layout that never throttles.
type ContentionExpression = (&'static str, &'static str, bool);
const RIVALS: [ContentionExpression; 5] = [
    ("snowflake, default layout", "snowflake_nextval()", false),
    ("snowflake, layout 40:1:22", "snowflake_nextval()", true),
    ("clock_timestamp()", "clock_timestamp()", true),
    ("nextval, CACHE 1", "nextval('contended_1')", true),
    ("nextval, CACHE 32", "nextval('contended_32')", true),
];
/// The number of rivals that are snowflakes.
const OURS: usize = 2;

/// Measures sessions that draw IDs in bulk, and the latencies inside the function.
pub fn run() -> BenchReport {
    let limited = server::fresh("limited").start();
    let free = server::unthrottled("free").start();
    let most = *steps(&SESSIONS).last().expect("numbers of sessions");
    let mut pools = [&limited, &free].map(|server| Sessions::open(server, most));
    timed(pools[1].control(), "CREATE SEQUENCE contended_1; CREATE SEQUENCE contended_32 CACHE 32");
    let mut rivals = RIVALS.to_vec();
    rivals.extend(rivals::others(pools[1].control()).iter().map(|rival| (rival.name, rival.expression, true)));
    let mut figures = bulk(&mut pools, &rivals);
    let machine = Machine::of(pools[0].control());
    let layout: String = pools[1].control().one("SHOW snowflake_pg.layout");
    drop(pools);
    figures.extend(latency::run(&free));
    let notes = [
        format!(
            "the settings above are those of the server with the default layout, whose limit is 4,096,000 IDs \
                 per second; the other server has the layout {layout}, in which no session is throttled"
        ),
        "in bulk: every session repeats `SELECT count(f()) FROM generate_series(..)` with about 20,000 rows, and the \
         total number of IDs is the same for any number of sessions; the time ends when the last session ends"
            .into(),
        "sessions that call clock_timestamp() share nothing, so what they lose with more sessions is due to the \
         machine and the statement"
            .into(),
        "CPU time is the time of the sessions' server processes, including the loop around the calls".into(),
        "latency inside the function: `SELECT clock_timestamp(), f(), clock_timestamp()` for every row, in whole \
         microseconds, with the layout 40:1:22; clock_timestamp() as f() is the floor, which shows what the \
         scheduler and other processes do to any call; one more session draws an ID every 25 ms, so that the mark is \
         raised as often as under load"
            .into(),
        "the slowest call in 100 ms, over all sessions: a call that waits until the mark is raised is the slowest in \
         its 100 ms, unless the machine delays a different call for longer"
            .into(),
    ];
    BenchReport { part: "contention".into(), machine, notes: notes.to_vec(), figures }
}

fn bulk(pools: &mut [Sessions; 2], rivals: &[ContentionExpression]) -> Vec<Figure> {
    let counts = steps(&SESSIONS);
    let rounds = rounds(ROUNDS);
    println!("==> sessions in bulk, {rounds} rounds of {} numbers of sessions", counts.len());
    let [rates, cpus, retries] = alternate(rounds, counts.len() * rivals.len(), |n| {
        let (sessions, (_, expression, free)) = (counts[n / rivals.len()], rivals[n % rivals.len()]);
        let pool = &mut pools[usize::from(free)];
        let each = scaled(IDS) / sessions as u64;
        let pieces = (each / PIECE).max(1);
        let draw = |ids: u64| format!("SELECT count({expression}) FROM generate_series(1, {ids})");
        let (warm, work) = (draw(WARM / sessions as u64), draw(each / pieces));
        let before = pool.counted();
        let (run, _) = pool.at_once(
            sessions,
            |client| _ = timed(client, &warm),
            |client| (0..pieces).for_each(|_| _ = timed(client, &work)),
        );
        let after = pool.counted();
        let ids = (each / pieces * pieces * sessions as u64) as f64;
        let issued = (after.issued - before.issued) as f64;
        [ids / run.seconds, run.cpu_nanos / ids, (after.retries - before.retries) as f64 / issued]
    });
    let turn = format!("{} IDs", group(scaled(IDS)));
    let names: Vec<_> = rivals.iter().map(|(name, ..)| *name).collect();
    let mut figures = Vec::new();
    let mut along = |name: &str, unit: &str, samples: &[Sample], count: usize, first: usize| {
        for (samples, sessions) in samples.chunks(rivals.len()).zip(counts).skip(first) {
            let figure = Figure::new(name, unit, &turn, &names[..count], &samples[..count]);
            figures.push(figure.at(AXIS, *sessions as u64));
        }
    };
    along("IDs in bulk", "per s", &rates, rivals.len(), 0);
    let reference = &rates[REFERENCE * rivals.len()..][..rivals.len()];
    let relative: Vec<_> = rates.iter().enumerate().map(|(n, rate)| rate.over(&reference[n % rivals.len()])).collect();
    let name = format!("IDs in bulk, relative to {} sessions", counts[REFERENCE]);
    along(&name, "x", &relative, rivals.len(), REFERENCE + 1);
    along("CPU time of an ID in bulk", "ns", &cpus, rivals.len(), 0);
    if pools.iter().all(Sessions::counts) {
        along("retries of an ID in bulk", "per ID", &retries, OURS, 0);
    }
    figures
}
