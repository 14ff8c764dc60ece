//! Random worlds of a registry that assigns numbers of tags.

use flake::fleet::LAST_NUMBER;

use crate::actions::{TagAction, WORLDS, period, trace};
use crate::faults::TagFault;
use crate::random::Random;
use crate::world::{TagFailure, TagSetup, TagWorld};
use crate::worlds;

impl worlds::World for TagWorld {
    type Fault = TagFault;
    type Setup = TagSetup;
    type Action = TagAction;
    type Failure = TagFailure;

    fn kinds() -> Vec<&'static str> {
        WORLDS.iter().map(|(name, _)| *name).collect()
    }

    fn random(random: &mut Random, fault: TagFault, kind: usize) -> (TagSetup, Vec<TagAction>) {
        let step = random.pick(&[1, 3, 10]);
        let setup = TagSetup {
            fault,
            servers: 1 + random.below(3),
            step,
            max_step: step * random.pick(&[1, 2, 10]),
            start: random.pick(&[0, 1, 1, 1, LAST_NUMBER - 5_000]),
            period: period(random, WORLDS[kind].0),
            strict: fault == TagFault::None,
        };
        (setup, trace(random, WORLDS[kind].1))
    }

    fn without_fault(setup: TagSetup) -> TagSetup {
        TagSetup { fault: TagFault::None, strict: true, ..setup }
    }

    fn begin(setup: TagSetup) -> TagWorld {
        TagWorld::new(setup)
    }

    fn play(&mut self, action: TagAction) {
        self.act(action);
    }

    fn end(&mut self) {
        self.heal();
    }

    fn failure(&self) -> Option<(&'static str, &TagFailure)> {
        self.failure.as_ref().map(|failure| (failure.kind(), failure))
    }

    fn amount(&self) -> (u64, u64) {
        (self.drawn, self.state.tags.life - 1)
    }
}
