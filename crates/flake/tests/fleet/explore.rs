//! Random worlds, and the shortest trace of a world that fails.

use crate::actions::{Action, WORLDS, trace};
use crate::checks::Failure;
use crate::faults::Fault;
use crate::random::Random;
use crate::world::{Setup, World};

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
    let mut world = World::new(setup);
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
#[derive(Clone, Copy, Debug, Default)]
pub struct Explored {
    pub worlds: usize,
    pub grants: usize,
    pub fences: usize,
    pub lives: u64,
}

/// Runs random worlds until one fails. Each world has its own seed, so that the failing one can be replayed alone.
pub fn explore(fault: Fault, kinds: &[usize], worlds: usize, seed: u64, heal: bool) -> Result<Explored, Box<Found>> {
    let mut explored = Explored::default();
    for number in 0..worlds {
        let seed = seed.wrapping_add(number as u64);
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let kind = kinds[random.below(kinds.len())];
        let setup = Setup {
            fault,
            worker_bits: random.pick(&[1, 2, 2, 3, 3, 4]),
            datacenters: random.pick(&[1, 1, 1, 2]),
            servers: 2 + random.below(4),
        };
        let trace = trace(&mut random, WORLDS[kind].1);
        let (world, _) = run(setup, &trace, heal);
        if let Some(failure) = &world.checks.failure {
            let (trace, failure) = shrink(setup, trace, failure.kind());
            return Err(Box::new(Found { seed, world: number, setup, trace, failure }));
        }
        explored.worlds += 1;
        explored.grants += world.checks.grants;
        explored.fences += world.checks.fences;
        explored.lives += world.registry.fleet.life - 1;
    }
    Ok(explored)
}
