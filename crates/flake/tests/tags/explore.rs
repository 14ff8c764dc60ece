//! Random worlds, and the shortest trace of a world that fails.

use flake::fleet::LAST_NUMBER;

use crate::actions::{Action, WORLDS, period, trace};
use crate::faults::Fault;
use crate::random::Random;
use crate::world::{Failure, Setup, World};

/// A trace that ends with a failure.
#[derive(Debug)]
pub struct Found {
    pub seed: u64,
    pub world: usize,
    pub setup: Setup,
    pub trace: Vec<Action>,
    pub failure: Failure,
}

/// Runs a trace, and heals the world afterwards. Returns the number of actions before the failure, if there is one.
pub fn run(setup: Setup, trace: &[Action]) -> (World, Option<usize>) {
    let mut world = World::new(setup);
    for (at, action) in trace.iter().enumerate() {
        world.act(*action);
        if world.failure.is_some() {
            return (world, Some(at + 1));
        }
    }
    world.heal();
    let end = world.failure.is_some().then_some(trace.len());
    (world, end)
}

/// Leaves out actions as long as the trace fails in the same way.
fn shrink(setup: Setup, mut trace: Vec<Action>, kind: &str) -> (Vec<Action>, Failure) {
    let fails = |trace: &[Action]| {
        let (world, end) = run(setup, trace);
        let failure = world.failure.filter(|failure| failure.kind() == kind)?;
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
#[derive(Clone, Copy, Debug, Default)]
pub struct Explored {
    pub worlds: usize,
    pub drawn: u64,
    pub lives: u64,
}

/// Runs random worlds until one fails. Each world has its own seed, so that the failing one can be replayed alone.
pub fn explore(fault: Fault, kinds: &[usize], worlds: usize, seed: u64) -> Result<Explored, Box<Found>> {
    let mut explored = Explored::default();
    for number in 0..worlds {
        let seed = seed.wrapping_add(number as u64);
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let kind = kinds[random.below(kinds.len())];
        let step = random.pick(&[1, 3, 10]);
        let setup = Setup {
            fault,
            servers: 1 + random.below(3),
            step,
            max_step: step * random.pick(&[1, 2, 10]),
            start: random.pick(&[0, 1, 1, 1, LAST_NUMBER - 5_000]),
            period: period(&mut random, WORLDS[kind].0),
            strict: fault == Fault::None,
        };
        let trace = trace(&mut random, WORLDS[kind].1);
        let (world, _) = run(setup, &trace);
        if let Some(failure) = &world.failure {
            let (trace, failure) = shrink(setup, trace, failure.kind());
            return Err(Box::new(Found { seed, world: number, setup, trace, failure }));
        }
        explored.worlds += 1;
        explored.drawn += world.drawn;
        explored.lives += world.state.tags.life - 1;
    }
    Ok(explored)
}
