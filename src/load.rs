//! Beginning to issue: after a start, a crash or a promotion, the first session that asks for an ID loads the mark.

use std::time::Duration;

use flake::{Hybrid, Mark, Nanos, Reservation};
use pgrx::{PgLogLevel, PgSqlErrorCode, debug1, ereport, pg_sys};

use crate::failure::{Failure, MarkProblem};
use crate::faults::{self, Fault};
use crate::identity::Identity;
use crate::wait::{self, Wait};
use crate::{clock, extend, keeper, mark, shmem, timestamp};

/// How long a session waits for [`keeper`] after the first start of a server, and how often it looks.
const PATIENCE: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(10);

/// Lets issuing begin at the clock or at the mark, whichever is later, where this server may issue at all.
pub fn load(identity: &Identity) {
    match refusal(identity) {
        Some(Failure::Standby) if faults::on(Fault::IssueInRecovery) => return begin_without_mark(),
        Some(failure) => failure.raise(),
        None => {}
    }
    if faults::on(Fault::MarkMadeByUser) {
        let _ = mark::make();
    }
    wait_for_keeper();
    mark::with_mark(|mark| begin(identity, mark));
}

/// Why this server issues nothing, whatever clock and mark say.
#[allow(unsafe_code)]
pub fn refusal(identity: &Identity) -> Option<Failure> {
    if !identity.worker_set {
        return Some(Failure::WorkerUnset { layout: identity.scheme.layout });
    }
    // SAFETY: reads shared memory that every backend is attached to.
    unsafe { pg_sys::RecoveryInProgress() }.then_some(Failure::Standby)
}

fn begin(identity: &Identity, mark: Mark) {
    let state = shmem::state();
    if state.last().is_some() {
        return;
    }
    let forgotten = faults::on(Fault::MarkNotLoaded) || faults::on(Fault::StatePerBackend);
    let mark = if forgotten { Mark::NOTHING_ISSUED } else { mark };
    let reading = clock::reading();
    let first = beginning(identity, mark, reading.wall).unwrap_or_else(|failure| failure.raise());
    let begins = identity.limits.time(first);
    if !state.load(first, Hybrid::start(reading, begins)) {
        return;
    }
    let time = |nanos: Nanos| timestamp::utc(timestamp::of(nanos));
    ereport!(
        PgLogLevel::LOG,
        PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
        format!("snowflake_pg: issuing begins at {}", time(reading.wall.max(begins))),
        format!("The clock shows {}, the high-water mark is at {}.", time(reading.wall), time(begins))
    );
}

/// The first word to issue when the wall clock shows `wall`; the failure where nothing may be issued.
pub fn beginning(identity: &Identity, mark: Mark, wall: Nanos) -> Result<u64, Failure> {
    let (limits, scheme) = (&identity.limits, identity.scheme);
    match limits.word_at(wall) {
        None => return Err(Failure::ClockBeforeEpoch { epoch: scheme.epoch }),
        Some(word) if word > limits.last_word() && !faults::on(Fault::SilentWrap) => {
            return Err(Failure::Exhausted { scheme });
        }
        Some(_) => {}
    }
    let first = identity.first_word(mark);
    let begins = limits.time(first);
    if begins.saturating_sub(wall) > extend::MAX_LEAD {
        return Err(Failure::MarkAhead { mark: identity.instant(first), clock: timestamp::of(wall), scheme });
    }
    if first > limits.last_word() && !faults::on(Fault::SilentWrap) {
        return Err(Failure::Exhausted { scheme });
    }
    Ok(first)
}

/// What [`Fault::IssueInRecovery`] does: a standby cannot write a mark.
fn begin_without_mark() {
    let state = shmem::state();
    let generation = state.generation();
    state.load(1, Hybrid::start(clock::reading(), 0));
    state.publish(generation, Reservation { ceiling: u64::MAX, renew: u64::MAX }, 0);
}

/// After the first start of a server the origin may not be made yet.
pub fn wait_for_keeper() {
    let begun = clock::monotonic();
    while !mark::exists() && keeper::problem() == MarkProblem::NotMade {
        debug1!("snowflake_pg: waiting for the background worker that makes the mark's place");
        if clock::monotonic() - begun > PATIENCE.as_nanos() as u64 {
            return;
        }
        wait::on_latch(Wait::Mark, POLL);
    }
}
