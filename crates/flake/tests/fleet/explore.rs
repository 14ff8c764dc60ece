//! Random worlds of a registry and its servers.

use crate::actions::{Action, WORLDS, trace};
use crate::checks::Failure;
use crate::faults::Fault;
use crate::random::Random;
use crate::world::{Setup, World};
use crate::worlds;

impl worlds::World for World {
    type Fault = Fault;
    type Setup = Setup;
    type Action = Action;
    type Failure = Failure;

    fn kinds() -> Vec<&'static str> {
        WORLDS.iter().map(|(name, _)| *name).collect()
    }

    fn random(random: &mut Random, fault: Fault, kind: usize) -> (Setup, Vec<Action>) {
        let setup = Setup {
            fault,
            worker_bits: random.pick(&[1, 2, 2, 3, 3, 4, 4, 5, 5, 6]),
            datacenters: random.pick(&[1, 1, 1, 2]),
            servers: 2 + random.below(4),
        };
        (setup, trace(random, WORLDS[kind].1))
    }

    fn without_fault(setup: Setup) -> Setup {
        Setup { fault: Fault::None, ..setup }
    }

    fn begin(setup: Setup) -> World {
        World::new(setup)
    }

    fn play(&mut self, action: Action) {
        self.act(action);
    }

    fn end(&mut self) {
        self.heal();
    }

    fn failure(&self) -> Option<&Failure> {
        self.failed()
    }

    fn kind(failure: &Failure) -> &'static str {
        failure.kind()
    }

    fn amount(&self) -> (u64, u64) {
        (self.checks.grants as u64, self.registry.fleet.life - 1)
    }
}
