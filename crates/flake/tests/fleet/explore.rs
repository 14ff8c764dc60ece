//! Random worlds of a registry and its servers.

use crate::actions::{FleetAction, WORLDS, trace};
use crate::faults::FleetFault;
use crate::invariants::FleetFailure;
use crate::random::Random;
use crate::world::{FleetSetup, FleetWorld};
use crate::worlds;

impl worlds::World for FleetWorld {
    type Fault = FleetFault;
    type Setup = FleetSetup;
    type Action = FleetAction;
    type Failure = FleetFailure;

    fn kinds() -> Vec<&'static str> {
        WORLDS.iter().map(|(name, _)| *name).collect()
    }

    fn random(random: &mut Random, fault: FleetFault, kind: usize) -> (FleetSetup, Vec<FleetAction>) {
        let setup = FleetSetup {
            fault,
            worker_bits: random.pick(&[1, 2, 2, 3, 3, 4, 4, 5, 5, 6]),
            datacenters: random.pick(&[1, 1, 1, 2]),
            servers: 2 + random.below(4),
        };
        (setup, trace(random, WORLDS[kind].1))
    }

    fn without_fault(setup: FleetSetup) -> FleetSetup {
        FleetSetup { fault: FleetFault::None, ..setup }
    }

    fn begin(setup: FleetSetup) -> FleetWorld {
        FleetWorld::new(setup)
    }

    fn play(&mut self, action: FleetAction) {
        self.act(action);
    }

    fn end(&mut self) {
        self.heal();
    }

    fn failure(&self) -> Option<(&'static str, &FleetFailure)> {
        self.failed().map(|failure| (failure.kind(), failure))
    }

    fn amount(&self) -> (u64, u64) {
        (self.checks.grants as u64, self.registry.fleet.life - 1)
    }
}
