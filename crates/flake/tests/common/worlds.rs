//! Random worlds of any kind, the shortest trace of a world that fails, and the checks of what was explored.
//!
//! The environment variable `FLEET_WORLDS` is the number of worlds in all tests of a file together. A test that fails prints the seed of
//! its world. With `SEED`, the same test runs only this world again.

use std::fmt::Debug;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::random::Random;

/// A world on which a trace of actions is played.
pub trait World: Sized {
    /// A rule that is missing.
    type Fault: Copy + Debug;
    /// How a world begins.
    type Setup: Copy + Debug;
    /// What happens in a world.
    type Action: Copy + Debug;
    /// What must never happen.
    type Failure: Clone + Debug;

    /// The names of the kinds of worlds.
    fn kinds() -> Vec<&'static str>;

    /// Returns how a world of this kind begins, and what happens in it.
    fn random(random: &mut Random, fault: Self::Fault, kind: usize) -> (Self::Setup, Vec<Self::Action>);

    /// Returns the same beginning with all rules.
    fn without_fault(setup: Self::Setup) -> Self::Setup;

    fn begin(setup: Self::Setup) -> Self;

    fn play(&mut self, action: Self::Action);

    /// Lets everything work again, and checks that nobody is stuck.
    fn end(&mut self);

    /// Returns the failure and its kind, which a shorter trace must share.
    fn failure(&self) -> Option<(&'static str, &Self::Failure)>;

    /// Returns how many worker IDs were granted or numbers drawn, and in how many lives of the registry.
    fn amount(&self) -> (u64, u64);
}

/// Kinds of actions with how often each is chosen in relation to the others.
pub type Weighted<K> = &'static [(usize, &'static [K])];

/// Returns each kind as often as it is chosen.
pub fn weighted<K: Copy>(always: Weighted<K>, more: &[Weighted<K>]) -> Vec<K> {
    let all = [always].into_iter().chain(more.iter().copied()).flatten();
    all.flat_map(|(weight, kinds)| kinds.iter().flat_map(move |kind| vec![*kind; *weight])).collect()
}

/// A trace that ends with a failure.
#[derive(Debug)]
struct FailedTrace<Setup, Action, Failure> {
    seed: u64,
    world: usize,
    setup: Setup,
    trace: Vec<Action>,
    kind: &'static str,
    failure: Failure,
}

type FoundIn<W> = Box<FailedTrace<<W as World>::Setup, <W as World>::Action, <W as World>::Failure>>;

/// Runs a trace, and lets the world work again afterwards. Returns the world and the number of actions before the failure.
fn run<W: World>(setup: W::Setup, trace: &[W::Action]) -> (W, Option<usize>) {
    let mut world = W::begin(setup);
    for (at, action) in trace.iter().enumerate() {
        world.play(*action);
        if world.failure().is_some() {
            return (world, Some(at + 1));
        }
    }
    world.end();
    let end = world.failure().is_some().then_some(trace.len());
    (world, end)
}

/// Leaves out actions as long as the trace fails in the same way.
fn shrink<W: World>(setup: W::Setup, mut trace: Vec<W::Action>, kind: &str) -> (Vec<W::Action>, W::Failure) {
    let fails = |trace: &[W::Action]| {
        let (world, end) = run::<W>(setup, trace);
        let (_, failure) = world.failure().filter(|(found, _)| *found == kind)?;
        Some((trace[..end?].to_vec(), failure.clone()))
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

/// Runs random worlds until one fails. Each world has its own seed, so that the failing one can be run again alone. Returns what
/// [`World::amount`] returns, for all worlds together.
fn explore<W: World>(fault: W::Fault, kinds: &[&str], worlds: usize, seed: u64) -> Result<(u64, u64), FoundIn<W>> {
    let all = W::kinds();
    let numbers: Vec<usize> =
        (0..all.len()).filter(|number| kinds.is_empty() || kinds.contains(&all[*number])).collect();
    assert!(kinds.is_empty() || numbers.len() == kinds.len(), "{kinds:?}");
    let mut amount = (0, 0);
    for number in 0..worlds {
        let seed = seed.wrapping_add(number as u64);
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let kind = numbers[random.below(numbers.len())];
        let (setup, trace) = W::random(&mut random, fault, kind);
        let (world, _) = run::<W>(setup, &trace);
        if let Some((kind, _)) = world.failure() {
            let (trace, failure) = shrink::<W>(setup, trace, kind);
            return Err(Box::new(FailedTrace { seed, world: number, setup, trace, kind, failure }));
        }
        let (issued, lives) = world.amount();
        amount = (amount.0 + issued, amount.1 + lives);
    }
    Ok(amount)
}

/// Returns the seed of the first world and the number of worlds, if `tests` tests together explore `everyday` worlds.
fn seed_and_worlds(everyday: usize, tests: usize) -> (u64, usize) {
    let variable = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    if let Some(seed) = variable("SEED") {
        return (seed, 1);
    }
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.as_nanos() as u64);
    (clock, variable("FLEET_WORLDS").map_or(everyday, |worlds| worlds as usize).div_ceil(tests))
}

/// Checks that worlds of these kinds hold. All `tests` tests together explore `everyday` worlds in an everyday run.
#[track_caller]
pub fn hold<W: World>(no_fault: W::Fault, kinds: &[&str], everyday: usize, tests: usize) {
    let (seed, worlds) = seed_and_worlds(everyday, tests);
    let begin = Instant::now();
    match explore::<W>(no_fault, kinds, worlds, seed) {
        Ok((issued, lives)) => {
            println!("{kinds:?}: {worlds} worlds, {issued} issued in {lives} lives in {:?}", begin.elapsed());
            // The exploration is meaningful only if something is issued.
            assert!(issued > worlds as u64 || worlds < 100, "{issued} issued in {worlds} worlds");
        }
        Err(found) => panic!("SEED={} replays this world: {found:?}", found.seed),
    }
}

/// Checks that worlds of these kinds, or of all kinds, fail in the expected way without one rule. The seed is fixed, so that the result
/// is, too.
#[track_caller]
pub fn caught<W: World>(fault: W::Fault, kinds: &[&str], expected: &str) {
    match explore::<W>(fault, kinds, 50_000, 1) {
        Ok(_) => panic!("{fault:?}: nothing fails"),
        Err(found) => {
            println!("{fault:?}: world {} fails: {:?} after {:?}", found.world, found.failure, found.trace);
            assert_eq!(found.kind, expected, "{fault:?}: {found:?}");
            // The fault is the cause: with all rules, the same trace holds.
            assert_eq!(run::<W>(W::without_fault(found.setup), &found.trace).1, None, "{found:?}");
        }
    }
}
