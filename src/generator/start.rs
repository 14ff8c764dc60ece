//! Starts issuing IDs. After a server start, a crash or a promotion, the first session that requests an ID loads the
//! mark.

use flake::{Generation, GeneratorClock, MAX_LEAD, Mark, Nanos};

use crate::config::identity::Identity;
use crate::faults;
use crate::generator::{grant_end, mark_storage, refusal, witness};
use crate::message;
use crate::message::clock::ClockProblem;
use crate::message::error::Error;
use crate::message::fleet::FleetProblem;
use crate::message::layout::LayoutProblem;
use crate::message::mark::MarkProblem;
use crate::message::start::Floor;
use crate::pg::timestamp;
use crate::server::{clock, shmem};

/// Starts issuing IDs at the clock's time, at the mark, or at the mark in the witness, whichever is highest. Raises an
/// error if this server cannot issue IDs.
pub fn load(identity: &Identity) {
    if let Some(error) = refusal::of_server(identity) {
        error.raise();
    }
    let state = shmem::state();
    if state.last().is_some() {
        return;
    }
    mark_storage::wait_for_origin();
    // This check comes before the claim, because a server that cannot issue IDs must not keep another server from
    // issuing them.
    mark_storage::with_mark(|mark| beginning(identity, mark, clock::wall())).unwrap_or_else(|error| error.raise());
    witness::claim(identity);
    // The generation is read before the mark, so that an outdated mark is not loaded.
    let generation = state.generation();
    let begun = mark_storage::with_mark(|mark| begin(identity, generation, mark)).unwrap_or_else(|error| error.raise());
    let Some(FirstIdTime { clock, begins, mark, floor }) = begun else { return };
    let at = |mark| timestamp::of(identity.limits.time(identity.first_word(mark)));
    let (first, shown) = (timestamp::of(clock.max(begins)), timestamp::of(clock));
    let above = if identity.registry_set { Floor::Grant(at(floor)) } else { Floor::Witness(at(floor)) };
    message::start::new_ids_begin(first, shown, at(mark), (floor > mark).then_some(above));
}

/// What determined the time of the first ID.
struct FirstIdTime {
    clock: Nanos,
    begins: Nanos,
    mark: Mark,
    floor: Mark,
}

/// Starts issuing IDs. Returns `None` if another session has started first.
fn begin(identity: &Identity, generation: Generation, mark: Mark) -> Result<Option<FirstIdTime>, Error> {
    let state = shmem::state();
    // The assignment is read after the generation (see [`flake::Assignment`]).
    if state.last().is_some() || state.assignment().get() != identity.assignment {
        return Ok(None);
    }
    let (reading, floor) = (clock::reading(), floor(identity));
    let first = beginning(identity, mark, reading.wall)?;
    let begins = identity.limits.time(first);
    let has_begun = state.load(generation, first, GeneratorClock::start(reading, begins));
    Ok(has_begun.then_some(FirstIdTime { clock: reading.wall, begins, mark, floor }))
}

/// Returns the first word to issue if the wall clock shows `wall`, or an error if no ID may be issued. The word is
/// above the mark and the mark in the witness.
pub fn beginning(identity: &Identity, mark: Mark, wall: Nanos) -> Result<u64, Error> {
    let (limits, format) = (&identity.limits, identity.format);
    match limits.word_at(wall) {
        None => return Err(ClockProblem::BeforeEpoch { epoch: format.epoch }.into()),
        Some(word) if word > limits.last_word() => return Err(LayoutProblem::Exhausted { format }.into()),
        Some(_) => {}
    }
    let floor = floor(identity);
    let first = identity.first_word(mark.max(floor));
    let begins = limits.time(first);
    if begins.saturating_sub(wall) > MAX_LEAD {
        let (of_witness, at) = (floor > mark, identity.instant(first));
        if identity.registry_set && floor > mark && floor == identity.start {
            return Err(FleetProblem::GrantAhead { start: at, clock: timestamp::of(wall) }.into());
        }
        return Err(MarkProblem::Ahead { of_witness, mark: at, clock: timestamp::of(wall), format }.into());
    }
    if first > limits.last_word() {
        return Err(LayoutProblem::Exhausted { format }.into());
    }
    let next = limits.word_at(wall).map_or(first, |word| word.max(first));
    grant_end::ended_before(identity, next).map_or(Ok(first), |problem| Err(problem.into()))
}

/// Returns the mark below which this machine has issued IDs or a different server of the fleet may have issued IDs.
fn floor(identity: &Identity) -> Mark {
    faults::floor(witness::mark().max(identity.start))
}
