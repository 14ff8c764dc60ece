//! The beginning of issuing. After a start, a crash or a promotion, the first session that requests an ID loads the mark.

use std::time::Duration;

use flake::{Hybrid, MAX_LEAD, Mark, Nanos};
use pgrx::debug1;

use crate::config::identity::Identity;
use crate::faults::{self, Fault};
use crate::generator::{clock, log, mark, shmem, wait, witness};
use crate::message::error::{Error, MarkProblem};
use crate::pg::wait_event::WaitEvent;
use crate::pg::{recovery, timestamp};

/// How long a session waits for the background worker after a server's first start, and how often the session checks.
const PATIENCE: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(10);

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
    if shmem::state().last().is_some() {
        return;
    }
    wait_for_origin();
    // A server that cannot issue IDs must not keep another server from issuing them.
    mark::with_mark(|mark| beginning(identity, faults::forgotten_mark().unwrap_or(mark), clock::wall()))
        .unwrap_or_else(|error| error.raise());
    witness::claim(identity);
    mark::with_mark(|mark| begin(identity, mark));
}

/// Returns the reason why this server issues no IDs, if there is a reason that depends neither on the clock nor on the mark.
pub fn refusal(identity: &Identity) -> Option<Error> {
    identity.refusal().or_else(|| recovery::in_recovery().then_some(Error::Standby))
}

fn begin(identity: &Identity, mark: Mark) {
    let state = shmem::state();
    if state.last().is_some() {
        return;
    }
    let mark = faults::forgotten_mark().unwrap_or(mark);
    let (reading, witness) = (clock::reading(), witness::mark());
    let first = beginning(identity, mark, reading.wall).unwrap_or_else(|error| error.raise());
    let begins = identity.limits.time(first);
    if !state.load(first, Hybrid::start(reading, begins)) {
        return;
    }
    let time = |nanos: Nanos| timestamp::utc(timestamp::of(nanos));
    let (clock, at) = (time(reading.wall), |mark| time(identity.limits.time(identity.first_word(mark))));
    let detail = match witness > mark {
        true => format!(
            "The clock shows {clock}, the high-water mark is at {}, and the mark in the witness is at {}.",
            at(mark),
            at(witness)
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
    let witness = witness::mark();
    let first = identity.first_word(mark.max(witness));
    let begins = limits.time(first);
    if begins.saturating_sub(wall) > MAX_LEAD {
        let (of_witness, at) = (witness > mark, identity.instant(first));
        return Err(Error::MarkAhead { of_witness, mark: at, clock: timestamp::of(wall), format });
    }
    if first > limits.last_word() && !faults::on(Fault::SilentWrap) {
        return Err(Error::Exhausted { format });
    }
    Ok(first)
}

/// Waits until the origin exists, because the background worker may not have created it yet after a server's first start.
pub fn wait_for_origin() {
    let begun = clock::monotonic();
    while !mark::exists() && shmem::origin_state().problem() == MarkProblem::NotMade {
        debug1!("snowflake_pg: waiting for the background worker to create the replication origin");
        if clock::monotonic().saturating_sub(begun) > PATIENCE.as_nanos() as u64 {
            return;
        }
        wait::on_latch(WaitEvent::Mark, POLL);
    }
}
