//! The core beside other crates that issue IDs in the layout `41:10:12`: in one process, without PostgreSQL. The rivals
//! read the same clock.

use std::hint::{black_box, spin_loop};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ferroid::generator::{AtomicSnowflakeGenerator, BasicSnowflakeGenerator, LockSnowflakeGenerator};
use ferroid::id::SnowflakeTwitterId;
use ferroid::time::{MonotonicClock, TWITTER_EPOCH, TimeSource};
use flake::{Epoch, IdFormat, Issuer, Layout, Mark, Nanos, Node, Obstacle, Reading};

use crate::cpu;
use crate::effort::{alternate, rounds, scaled};
use crate::machine::Machine;
use crate::report::{BenchReport, Figure, group};

/// The number of rounds.
const ROUNDS: usize = 25;

/// The number of bursts in a turn.
const BURSTS: u64 = 200;

/// The number of IDs in a burst. They take a fraction of the millisecond in which the layout has 4096, so that no rival waits.
const BURST: u64 = 1_000;

/// The time from one burst to the next.
const PAUSE: Duration = Duration::from_millis(2);

/// The number of IDs in a turn without pauses. The layout allows 4,096,000 in a second.
const BULK: u64 = 1_000_000;

/// The number of IDs before such a turn, more than a rival can issue ahead of the clock.
const WARM_UP: u64 = 600_000;

/// The worker ID.
const WORKER: u16 = 7;

/// The rivals that threads can share.
const SHARED: [&str; 4] =
    ["flake", "ferroid, AtomicSnowflakeGenerator", "ferroid, LockSnowflakeGenerator", "snowflaked, sync::Generator"];

/// The rivals in one thread.
const SINGLE: [&str; 8] = [
    "flake",
    "flake, 100 IDs per call",
    "ferroid, BasicSnowflakeGenerator",
    "ferroid, AtomicSnowflakeGenerator",
    "ferroid, AtomicSnowflakeGenerator, its own clock",
    "ferroid, LockSnowflakeGenerator",
    "snowflaked, Generator",
    "snowflaked, sync::Generator",
];

/// The clock of ferroid's generators.
#[derive(Clone, Copy)]
struct WallClock;

impl TimeSource<u64> for WallClock {
    fn current_millis(&self) -> u64 {
        since_1970().saturating_sub(TWITTER_EPOCH).as_millis() as u64
    }
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970")
}

fn nanos() -> Nanos {
    since_1970().as_nanos() as Nanos
}

fn format() -> IdFormat {
    IdFormat { layout: Layout::TWITTER, epoch: Epoch::TWITTER }
}

/// One generator of each kind that threads can share, all with the same worker ID.
struct Rivals {
    flake: Issuer,
    atomic: AtomicSnowflakeGenerator<SnowflakeTwitterId, WallClock>,
    lock: LockSnowflakeGenerator<SnowflakeTwitterId, WallClock>,
    sync: snowflaked::sync::Generator,
}

/// One generator of each kind for one thread.
struct Unshared {
    basic: BasicSnowflakeGenerator<SnowflakeTwitterId, WallClock>,
    plain: snowflaked::Generator,
}

impl Rivals {
    fn new() -> Rivals {
        // With the wall clock in the place of the monotonic clock, all rivals read the same clock.
        let now = nanos();
        let reading = Reading { monotonic: now, boot: now, wall: now, apart: 0 };
        let node = Node { datacenter: 0, worker: WORKER.into() };
        let flake = Issuer::start(&format(), node, Mark::NOTHING_ISSUED, reading).expect("the node fits");
        // The reservation is never renewed: the time that storing a mark takes is not the cost of an ID.
        flake.reserve(now + 86_400_000_000_000, 0).expect("no other thread plans").publish(now);
        Rivals {
            flake,
            atomic: AtomicSnowflakeGenerator::new(WORKER.into(), WallClock),
            lock: LockSnowflakeGenerator::new(WORKER.into(), WallClock),
            sync: snowflaked().build(),
        }
    }

    fn flake(&self) -> i64 {
        patient(|| self.flake.next_id(nanos))
    }

    /// Issues 100 IDs, and returns their sum.
    fn flake_100(&self) -> i64 {
        patient(|| self.flake.next_ids(100, nanos)).fold(0, i64::wrapping_add)
    }

    fn atomic(&self) -> i64 {
        self.atomic.next_id(pause).to_raw() as i64
    }

    fn lock(&self) -> i64 {
        self.lock.try_next_id(pause).expect("no thread has panicked").to_raw() as i64
    }
}

/// Repeats a call of flake until it has its IDs.
fn patient<T>(mut call: impl FnMut() -> Result<T, Obstacle>) -> T {
    loop {
        match call() {
            Ok(issued) => return issued,
            Err(Obstacle::Throttled(pause)) => thread::sleep(pause),
            Err(obstacle) => panic!("{obstacle}"),
        }
    }
}

/// How ferroid waits: as its documentation says, at once if another thread was faster, and otherwise by yielding to other threads.
fn pause(milliseconds: u64) {
    if milliseconds == 0 { spin_loop() } else { thread::yield_now() }
}

impl Unshared {
    fn new() -> Unshared {
        Unshared { basic: BasicSnowflakeGenerator::new(WORKER.into(), WallClock), plain: snowflaked().build() }
    }

    fn basic(&self) -> i64 {
        self.basic.next_id(pause).to_raw() as i64
    }
}

fn snowflaked() -> snowflaked::Builder {
    snowflaked::Builder::new().instance(WORKER).epoch(UNIX_EPOCH + TWITTER_EPOCH)
}

/// Checks that the IDs of all rivals mean the same.
fn check(rivals: &Rivals, unshared: &mut Unshared) {
    let shared = [rivals.flake(), rivals.atomic(), rivals.lock(), rivals.sync.generate()];
    for id in shared.into_iter().chain([unshared.basic(), unshared.plain.generate()]) {
        let parts = format().split(id).expect("an ID");
        assert_eq!(parts.node, Node { datacenter: 0, worker: WORKER.into() }, "the node of {id}");
        let off = (format().instant(parts.tick) - since_1970().as_micros() as i128).abs();
        assert!(off < 1_000_000, "the time of {id} is {off} µs off");
    }
}

/// Measures all rivals.
pub fn run() -> BenchReport {
    let (rivals, mut unshared) = (Rivals::new(), Unshared::new());
    check(&rivals, &mut unshared);
    let mut figures = vec![two_threads(&rivals)];
    for threads in [1, 2] {
        figures.extend(in_bulk(&rivals, threads));
    }
    // This figure comes last, because the thread of ferroid's own clock runs from then on.
    figures.insert(0, one_thread(&rivals, &mut unshared));
    let notes = [
        format!(
            "cost: bursts of {} IDs, {} ms apart, so that no rival reaches the limit of the layout; with two threads, both issue \
             such bursts from one generator at the same times",
            group(BURST),
            PAUSE.as_millis()
        ),
        "in bulk: IDs without a pause, of which the layout allows 4,096,000 per second; the caller of flake sleeps \
         for the time that flake returns, the caller of ferroid yields to other threads, as in its documentation, \
         and snowflaked spins"
            .into(),
        "all rivals read `SystemTime::now()` for each ID, with two exceptions: flake reads it once in a call for 100 \
         IDs, and ferroid's own clock is a number that one of its threads updates once a millisecond"
            .into(),
        "flake has one reservation for the whole run, so the cost of storing a mark is not included".into(),
    ];
    let versions =
        vec![format!("flake {}", env!("CARGO_PKG_VERSION")), "ferroid 2.0.0".into(), "snowflaked 1.0.4".into()];
    BenchReport { part: "crates".into(), machine: Machine::alone(versions), notes: notes.to_vec(), figures }
}

fn one_thread(rivals: &Rivals, unshared: &mut Unshared) -> Figure {
    let ticker = AtomicSnowflakeGenerator::<SnowflakeTwitterId, _>::new(
        WORKER.into(),
        MonotonicClock::<1>::with_epoch(TWITTER_EPOCH),
    );
    let rounds = announced("cost of an ID, one thread");
    let [cost] = alternate(rounds, SINGLE.len(), |rival| {
        [match rival {
            0 => burst_cost(|| rivals.flake(), 1),
            1 => burst_cost(|| rivals.flake_100(), 100),
            2 => burst_cost(|| unshared.basic(), 1),
            3 => burst_cost(|| rivals.atomic(), 1),
            4 => burst_cost(|| ticker.next_id(pause).to_raw() as i64, 1),
            5 => burst_cost(|| rivals.lock(), 1),
            6 => burst_cost(|| unshared.plain.generate(), 1),
            _ => burst_cost(|| rivals.sync.generate(), 1),
        }]
    });
    let turn = format!("{} IDs", group(scaled(BURSTS) * BURST));
    Figure::new("cost of an ID, one thread", "ns", &turn, &SINGLE, &cost)
}

fn two_threads(rivals: &Rivals) -> Figure {
    let rounds = announced("cost of an ID, two threads");
    let [cost] = alternate(rounds, SHARED.len(), |rival| {
        [match rival {
            0 => shared_cost(|| rivals.flake()),
            1 => shared_cost(|| rivals.atomic()),
            2 => shared_cost(|| rivals.lock()),
            _ => shared_cost(|| rivals.sync.generate()),
        }]
    });
    let turn = format!("2 × {} IDs", group(scaled(BURSTS) * BURST));
    Figure::new("cost of an ID, two threads", "ns", &turn, &SHARED, &cost)
}

fn in_bulk(rivals: &Rivals, threads: u64) -> [Figure; 2] {
    let rounds = announced("IDs in bulk");
    let [rate, cpu] = alternate(rounds, SHARED.len(), |rival| match rival {
        0 => bulk(threads, || rivals.flake()),
        1 => bulk(threads, || rivals.atomic()),
        2 => bulk(threads, || rivals.lock()),
        _ => bulk(threads, || rivals.sync.generate()),
    });
    let turn = format!("{} IDs", group(scaled(BULK)));
    [
        Figure::new("IDs in bulk", "IDs/s", &turn, &SHARED, &rate).at("threads", threads),
        Figure::new("CPU time of an ID in bulk", "ns", &turn, &SHARED, &cpu).at("threads", threads),
    ]
}

fn announced(name: &str) -> usize {
    let rounds = rounds(ROUNDS);
    println!("==> {name}, {rounds} rounds");
    rounds
}

/// Returns the nanoseconds that one ID takes. A call of `draw` issues `each` IDs.
fn burst_cost(mut draw: impl FnMut() -> i64, each: u64) -> f64 {
    bursts(Instant::now() + PAUSE, &mut draw, each)
}

/// Returns the nanoseconds that one ID takes in each of two threads.
fn shared_cost(draw: impl Fn() -> i64 + Sync) -> f64 {
    // The threads begin their bursts at the same times.
    let begin = Instant::now() + 10 * PAUSE;
    let costs = thread::scope(|scope| {
        let threads = [(); 2].map(|()| scope.spawn(|| bursts(begin, &mut || draw(), 1)));
        threads.map(|thread| thread.join().expect("no rival panics"))
    });
    (costs[0] + costs[1]) / 2.0
}

fn bursts(begin: Instant, draw: &mut impl FnMut() -> i64, each: u64) -> f64 {
    let count = scaled(BURSTS);
    let mut spent = Duration::ZERO;
    for burst in 0..count {
        let due = begin + PAUSE * burst as u32;
        while Instant::now() < due {
            spin_loop();
        }
        let begun = Instant::now();
        for _ in 0..BURST / each {
            black_box(draw());
        }
        spent += begun.elapsed();
    }
    spent.as_nanos() as f64 / (count * BURST) as f64
}

/// Returns the IDs per second that threads issue together without a pause, and the CPU time of one ID in nanoseconds.
fn bulk(threads: u64, draw: impl Fn() -> i64 + Sync) -> [f64; 2] {
    for _ in 0..WARM_UP {
        black_box(draw());
    }
    let each = scaled(BULK) / threads;
    let begun = Instant::now();
    let cpu: u64 = thread::scope(|scope| {
        let run = || {
            for _ in 0..each {
                black_box(draw());
            }
            cpu::of_this_thread()
        };
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        threads.into_iter().map(|thread| thread.join().expect("no rival panics")).sum()
    });
    let issued = (each * threads) as f64;
    [issued / begun.elapsed().as_secs_f64(), cpu as f64 / issued]
}
