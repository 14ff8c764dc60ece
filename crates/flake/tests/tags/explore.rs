//! Random worlds of a registry that assigns numbers of tags.

use flake::fleet::LAST_NUMBER;

use crate::actions::{Action, WORLDS, period, trace};
use crate::faults::Fault;
use crate::random::Random;
use crate::world::{Failure, Setup, World};
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
        let step = random.pick(&[1, 3, 10]);
        let setup = Setup {
            fault,
            servers: 1 + random.below(3),
            step,
            max_step: step * random.pick(&[1, 2, 10]),
            start: random.pick(&[0, 1, 1, 1, LAST_NUMBER - 5_000]),
            period: period(random, WORLDS[kind].0),
            strict: fault == Fault::None,
        };
        (setup, trace(random, WORLDS[kind].1))
    }

    fn without_fault(setup: Setup) -> Setup {
        Setup { fault: Fault::None, strict: true, ..setup }
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
        self.failure.as_ref()
    }

    fn kind(failure: &Failure) -> &'static str {
        failure.kind()
    }

    fn amount(&self) -> (u64, u64) {
        (self.drawn, self.state.tags.life - 1)
    }
}
