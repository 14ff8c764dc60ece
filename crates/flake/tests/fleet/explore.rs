//! Random worlds, and the shortest trace of a world that fails.

use std::time::Instant;

use crate::actions::{Action, Kind, WORLDS, trace};
use crate::checks::Failure;
use crate::faults::Fault;
use crate::random::Random;
use crate::world::World;

/// What a trace needs to be replayed.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub fault: Fault,
    pub worker_bits: u32,
    pub servers: usize,
}

/// A trace that ends with a failure.
#[derive(Debug)]
pub struct Found {
    pub seed: u64,
    pub world: usize,
    pub setup: Setup,
    pub trace: Vec<Action>,
    pub failure: Failure,
}

/// Runs a trace, and heals the world afterwards if `heal`. Returns the failure and the number of actions before it.
pub fn run(setup: Setup, trace: &[Action], heal: bool) -> (World, Option<usize>) {
    let mut world = World::new(setup.fault, setup.worker_bits, setup.servers);
    for (at, action) in trace.iter().enumerate() {
        world.act(*action);
        if world.failed().is_some() {
            return (world, Some(at + 1));
        }
    }
    if heal {
        world.heal();
    }
    let end = world.failed().is_some().then_some(trace.len());
    (world, end)
}

/// Leaves out actions as long as the trace fails in the same way.
fn shrink(setup: Setup, mut trace: Vec<Action>, kind: &str) -> (Vec<Action>, Failure) {
    let fails = |trace: &[Action]| {
        let (world, end) = run(setup, trace, true);
        let failure = world.checks.failure.filter(|failure| failure.kind() == kind)?;
        Some((trace[..end?].to_vec(), failure))
    };
    let mut best = fails(&trace);
    let mut shorter = true;
    while std::mem::take(&mut shorter) {
        for size in [12, 6, 3, 1] {
            let mut from = 0;
            while from < trace.len() {
                let mut tried = trace.clone();
                tried.drain(from..(from + size).min(trace.len()));
                match fails(&tried) {
                    Some(found) => {
                        trace.clone_from(&found.0);
                        best = Some(found);
                        shorter = true;
                    }
                    None => from += size,
                }
            }
        }
    }
    best.expect("the trace failed before")
}

/// What was explored.
#[derive(Debug, Default)]
pub struct Explored {
    pub worlds: usize,
    pub grants: usize,
    pub fences: usize,
    pub lives: u64,
}

/// Runs random worlds until one fails. Each world has its own seed, so that the failing one can be replayed alone.
pub fn explore(fault: Fault, kinds: &[usize], worlds: usize, seed: u64, heal: bool) -> Result<Explored, Found> {
    let mut explored = Explored::default();
    for number in 0..worlds {
        let seed = seed.wrapping_add(number as u64);
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let kind = kinds[random.below(kinds.len())];
        let setup = Setup { fault, worker_bits: random.pick(&[1, 2, 2, 3, 3, 4]), servers: 2 + random.below(4) };
        let trace = trace(&mut random, WORLDS[kind].1);
        let (world, _) = run(setup, &trace, heal);
        if let Some(failure) = &world.checks.failure {
            let (trace, failure) = shrink(setup, trace, failure.kind());
            return Err(Found { seed, world: number, setup, trace, failure });
        }
        explored.worlds += 1;
        explored.grants += world.checks.grants;
        explored.fences += world.checks.fences;
        explored.lives += world.registry.fleet.life - 1;
    }
    Ok(explored)
}

/// The number of worlds in each test: `FLEET_WORLDS` in all tests together.
fn worlds(tests: usize) -> usize {
    let worlds: usize = std::env::var("FLEET_WORLDS").ok().and_then(|count| count.parse().ok()).unwrap_or(60_000);
    worlds / tests
}

/// The seed from the environment variable `SEED`, or a new one.
fn seed() -> (u64, bool) {
    match std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => (seed, true),
        None => {
            let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
            (time.as_nanos() as u64, false)
        }
    }
}

/// Explores worlds of these kinds without a fault. A run with `SEED` explores only the world with this seed.
#[track_caller]
pub fn holds(kinds: &[&str], tests: usize) {
    let (seed, one) = seed();
    let count = if one { 1 } else { worlds(tests) };
    let numbers: Vec<usize> =
        (0..WORLDS.len()).filter(|number| kinds.is_empty() || kinds.contains(&WORLDS[*number].0)).collect();
    let begin = Instant::now();
    println!("first SEED={seed}");
    match explore(Fault::None, &numbers, count, seed, true) {
        Ok(explored) => println!("{kinds:?}: {explored:?} in {:?}", begin.elapsed()),
        Err(found) => panic!("SEED={} replays this world: {found:?}", found.seed),
    }
}

/// Checks that worlds without one rule fail in the expected way.
#[track_caller]
pub fn caught(fault: Fault, expected: &[&str], worlds: usize) {
    let numbers: Vec<usize> = (0..WORLDS.len()).collect();
    match explore(fault, &numbers, worlds, 1, true) {
        Ok(explored) => panic!("{fault:?}: nothing fails in {explored:?}"),
        Err(found) => {
            println!("{fault:?}: world {} fails: {found:?}", found.world);
            assert!(expected.contains(&found.failure.kind()), "{fault:?}: {:?}", found.failure);
            // The same trace without the fault holds, so that the fault is the cause.
            let setup = Setup { fault: Fault::None, ..found.setup };
            assert_eq!(run(setup, &found.trace, true).1, None, "{found:?}");
        }
    }
}

#[test]
fn worlds_hold() {
    holds(&[], 1);
}

#[test]
fn probe() {
    let _ = Kind::Pass;
}

#[test]
fn sweep() {
    use Fault::*;
    let numbers: Vec<usize> = (0..WORLDS.len()).collect();
    for fault in [
        ClaimMargin,
        ClaimClock,
        RingFloor,
        SparesFloor,
        SpareSeen,
        FirstLease,
        ClaimRepeated,
        Repeated,
        Expired,
        GivenAway,
        Copied,
        FirstMargin,
        Wanted,
        AdoptLower,
        AdoptAbsent,
        AdoptLater,
        AdoptAny,
        Source,
        Told,
        Quarantine,
        Far,
        Earlier,
        Jump,
        ToldOpen,
        Within,
        Stale,
        OpenAll,
        LayoutFloor,
        PendingChanged,
        PendingNotStored,
        Bound,
        Start,
        Used,
        WitnessOnDisk,
    ] {
        match explore(fault, &numbers, 60_000, 1, true) {
            Ok(_) => println!("{fault:?}: NOT CAUGHT"),
            Err(found) => println!(
                "{fault:?}: world {} {:?} bits {} servers {} {:?}",
                found.world,
                found.failure.kind(),
                found.setup.worker_bits,
                found.setup.servers,
                found.trace
            ),
        }
    }
}
