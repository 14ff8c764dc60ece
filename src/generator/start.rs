//! The beginning of issuing. After a start, a crash or a promotion, the first session that requests an ID loads the mark.

use flake::{Generation, GeneratorClock, MAX_LEAD, Mark, Nanos};

use crate::config::identity::Identity;
use crate::faults::{self, Fault};
use crate::fleet::refusal;
use crate::generator::{assigned, mark, witness};
use crate::message::error::Error;
use crate::pg::{recovery, timestamp};
use crate::server::{clock, log, shmem};

/// Begins issuing IDs at the clock, at the mark or at the mark in the witness, whichever is latest. Raises an error if this server
/// cannot issue IDs.
pub fn load(identity: &Identity) {
    match refusal(identity) {
        Some(Error::Standby) if faults::on(Fault::IssueInRecovery) => {
            return faults::begin_without_mark(shmem::state(), clock::reading());
        }
        Some(error) => error.raise(),
        None => {}
    }
    if faults::on(Fault::MarkMadeByUser) {
        let _ = mark::make();
    }
    let state = shmem::state();
    if state.last().is_some() {
        return;
    }
    mark::wait_for_origin();
    // A server that cannot issue IDs must not keep another server from issuing them.
    mark::with_mark(|mark| beginning(identity, faults::forgotten_mark().unwrap_or(mark), clock::wall()))
        .unwrap_or_else(|error| error.raise());
    witness::claim(identity);
    // The generation is read before the mark, so that a mark that is out of date is not loaded.
    let generation = state.generation();
    mark::with_mark(|mark| begin(identity, generation, mark));
}

/// Returns the reason why this server issues no IDs, if there is a reason that depends neither on the clock nor on the mark.
pub fn refusal(identity: &Identity) -> Option<Error> {
    let standby = || recovery::in_recovery().then_some(Error::Standby);
    identity.refusal().or_else(standby).or_else(|| refusal::current(identity))
}

fn begin(identity: &Identity, generation: Generation, mark: Mark) {
    let state = shmem::state();
    // The assignment is read after the generation, see [`flake::Assignment`].
    if state.last().is_some() || state.assignment().get() != identity.assignment {
        return;
    }
    let mark = faults::forgotten_mark().unwrap_or(mark);
    let (reading, floor) = (clock::reading(), floor(identity));
    let first = beginning(identity, mark, reading.wall).unwrap_or_else(|error| error.raise());
    let begins = identity.limits.time(first);
    if !state.load(generation, first, GeneratorClock::start(reading, begins)) {
        return;
    }
    let time = |nanos: Nanos| timestamp::utc(timestamp::of(nanos));
    let (clock, at) = (time(reading.wall), |mark| time(identity.limits.time(identity.first_word(mark))));
    let detail = match floor > mark {
        true if identity.registry_set => format!(
            "The clock shows {clock}, the high-water mark is at {}, and the unused part of the grant begins at {}.",
            at(mark),
            at(floor)
        ),
        true => format!(
            "The clock shows {clock}, the high-water mark is at {}, and the mark in the witness is at {}.",
            at(mark),
            at(floor)
        ),
        false => format!("The clock shows {clock}, and the high-water mark is at {}.", at(mark)),
    };
    log::log(format!("new IDs begin at {}", time(reading.wall.max(begins))), detail);
}

/// Returns the first word to issue if the wall clock shows `wall`, or returns the error if no ID may be issued. The word is above
/// the mark and the mark in the witness.
pub fn beginning(identity: &Identity, mark: Mark, wall: Nanos) -> Result<u64, Error> {
    let (limits, format) = (&identity.limits, identity.format);
    match limits.word_at(wall) {
        None => return Err(Error::ClockBeforeEpoch { epoch: format.epoch }),
        Some(word) if word > limits.last_word() && !faults::on(Fault::SilentWrap) => {
            return Err(Error::Exhausted { format });
        }
        Some(_) => {}
    }
    let floor = floor(identity);
    let first = identity.first_word(mark.max(floor));
    let begins = limits.time(first);
    if begins.saturating_sub(wall) > MAX_LEAD {
        let (of_witness, at) = (floor > mark, identity.instant(first));
        if identity.registry_set && floor > mark && floor == identity.start {
            return Err(Error::GrantAhead { start: at, clock: timestamp::of(wall) });
        }
        return Err(Error::MarkAhead { of_witness, mark: at, clock: timestamp::of(wall), format });
    }
    if first > limits.last_word() && !faults::on(Fault::SilentWrap) {
        return Err(Error::Exhausted { format });
    }
    let next = limits.word_at(wall).map_or(first, |word| word.max(first));
    assigned::ended_before(identity, next).map_or(Ok(first), Err)
}

/// Returns the mark below which this machine has issued IDs, or another server of the fleet may have issued them.
fn floor(identity: &Identity) -> Mark {
    match faults::on(Fault::StartIgnored) {
        true => Mark::NOTHING_ISSUED,
        false => witness::mark().max(identity.start),
    }
}
