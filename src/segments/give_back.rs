//! Returns the numbers that this server has not drawn to the registry: those of one tag, and those of all tags when the
//! server is shut down.

use std::time::{Duration, Instant};

use flake::refill::Rest;

use crate::message::registry::Trouble;
use crate::pg::background_worker;
use crate::pg::libpq::QueryFailure;
use crate::segments::connections::RequestContext;
use crate::segments::fetch::{FetchState, Fetcher, Task};
use crate::segments::slots::{self, Phase, Slot};

/// How long the registrar returns numbers to the registry before it exits.
const PARTING: Duration = Duration::from_secs(3);

impl Fetcher {
    /// Returns the remaining numbers of a closed slot to the registry, and frees the slot. After an error, the numbers
    /// are lost. Returns true if the registry has answered.
    pub(super) fn give_back(&mut self, task: &Task, context: &RequestContext) -> Result<bool, Trouble> {
        let FetchState { version, refill } = self.tags.remove(&task.index).unwrap_or_default();
        let rests: Vec<Rest> = refill.rests(task.slot.segment.left()).collect();
        let mut rest = rests.iter();
        let given = rest.try_for_each(|rest| {
            self.connection.request(context, |client| client.give_back(&task.name, rest)).map(drop)
        });
        task.slot.free(version);
        match given {
            // The slot is free, so this task will not be requested again.
            Err(Trouble::NoAnswer(QueryFailure::Interrupted)) => Ok(false),
            given => given.map(|()| !rests.is_empty()),
        }
    }

    /// Closes all segments and returns their remaining numbers to the registry, because the server is shutting down.
    /// Numbers that cannot be returned within a few seconds are lost.
    pub fn part(&mut self, context: Option<&RequestContext>) {
        background_worker::part();
        let deadline = Instant::now() + PARTING;
        slots::all().iter().filter(|slot| slot.phase() != Phase::Free).for_each(Slot::leave);
        for task in (0..slots::all().len()).map(Task::of) {
            let known = self.tags.get(&task.index).is_some_and(|tag| tag.version == task.version);
            let time = deadline.saturating_duration_since(Instant::now());
            let context = context.filter(|_| task.phase == Phase::Leaving && known && !time.is_zero());
            let Some(context) = context else { continue };
            if self.give_back(&task, &RequestContext { time, ..*context }).is_err() {
                break;
            }
        }
        slots::all().iter().for_each(|slot| slot.free(slot.version()));
    }
}
