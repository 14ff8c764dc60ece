//! The slow path: extending the reservation. An ID is issued only below a mark that is on disk and, where a synchronous
//! standby is configured, has been seen acknowledged by it.
//!
//! Whoever finds half of the reservation used extends it, while the others go on in the rest. Nothing is held while waiting,
//! and whoever waits can be cancelled; a mark that was written meanwhile stays, it is only not made use of.

use std::time::Duration;

use flake::{Mark, Nanos};
use pgrx::pg_sys::{InterruptPending, XLogRecPtr};
use pgrx::{debug1, debug2};

use crate::failure::Failure;
use crate::faults::{self, Fault};
use crate::guc::{self, ClockRegression};
use crate::identity::Identity;
use crate::wait::{self, Wait};
use crate::{announce, clock, mark, replication, shmem, stats};

/// How long a session sleeps before it looks again whether another has extended the reservation, or the standby has
/// acknowledged the mark.
const POLL: Duration = Duration::from_millis(1);

/// Longest time for which the setting `wait` waits for the clock.
const LONGEST_WAIT: Nanos = 10_000_000_000;

/// A lead beyond which a restart refuses to begin at the mark.
pub const MAX_LEAD: Nanos = 86_400_000_000_000;

/// Extends the reservation in advance, unless somebody is at it or the clock forbids it: there is a half left.
#[cold]
pub fn renew(identity: &Identity) {
    extend(identity, None);
}

/// Extends the reservation to cover all words below `needed`, or waits for who is at it. Returns the time it is meant for,
/// which may be over before the mark was acknowledged; `None` where the caller must look again.
#[cold]
pub fn extend_to(identity: &Identity, needed: u64) -> Option<Nanos> {
    extend(identity, Some(needed))
}

fn extend(identity: &Identity, needed: Option<u64>) -> Option<Nanos> {
    let state = shmem::state();
    // Before `last`, which is `None` where the mark was set meanwhile.
    let generation = state.generation();
    let last = state.last()?;
    let begun = clock::monotonic();
    let Some(claim) = state.claim(begun, needed.is_none()) else {
        if needed.is_some() {
            debug2!("snowflake_pg: waiting for another session to extend the reservation");
            wait::on_latch(Wait::Mark, POLL);
        }
        return None;
    };
    let steered = state.steer(clock::reading, identity.limits.time(last), &guc::clock_rules());
    announce::clock(&steered);
    if let Some(behind) = steered.behind {
        state.release(claim);
        match needed {
            Some(_) => wait_for_clock(behind),
            None => debug1!("snowflake_pg: not extending in advance, the clock is behind by {} ms", behind / 1_000_000),
        }
        return None;
    }
    let now = steered.clock.time(clock::monotonic());
    debug2!("snowflake_pg: compared the clocks, generator time leads the wall clock by {} us", steered.lead / 1_000);
    let reservation = state.next_reservation(&identity.limits, now, needed.unwrap_or(last + 1));
    let covered = if faults::on(Fault::MarkBehind) { last + 1 } else { reservation.ceiling };
    let written = mark::raise(Mark::above(&identity.stamp, covered), || {
        let published = state.published().filter(|_| !faults::on(Fault::MarkBehind));
        let least = published.map_or(Mark::NOTHING_ISSUED, |ceiling| Mark::above(&identity.stamp, ceiling));
        // After the ceiling: one of a later generation is not meant.
        (state.generation() == generation).then_some(least)
    });
    let written = match written {
        Ok(Some(written)) => written,
        Ok(None) => {
            debug1!("snowflake_pg: not extending, the mark was set meanwhile");
            return None;
        }
        Err(problem) => {
            state.release(claim);
            // Who extends in advance has an ID, and leaves the error to those who get none.
            if needed.is_none() {
                debug1!("snowflake_pg: not extending in advance, the mark is missing: {problem:?}");
                return None;
            }
            Failure::MarkMissing { problem }.raise()
        }
    };
    if !faults::on(Fault::PublishBeforeFlush) {
        faults::slow_disk();
        mark::flush(written);
        acknowledged(written);
    }
    let took = clock::monotonic() - begun;
    let published = state.publish(generation, reservation, took);
    state.release(claim);
    if !published {
        debug1!("snowflake_pg: the mark was set while the reservation was extended");
        return Some(now);
    }
    stats::extended(took);
    debug1!(
        "snowflake_pg: extended the reservation{} to word {} in {} us",
        if needed.is_none() { " in advance" } else { "" },
        reservation.ceiling,
        took / 1_000
    );
    announce::end_of_layout(identity, clock::wall());
    Some(now)
}

/// Waits until the synchronous standby has acknowledged the WAL up to `lsn`, or none is configured any more.
#[allow(unsafe_code)]
pub fn acknowledged(lsn: XLogRecPtr) {
    let mut told = false;
    while !replication::acknowledged(lsn) {
        if !told {
            debug1!("snowflake_pg: waiting for the synchronous standby to acknowledge the mark");
            told = true;
        }
        wait::sleep(Wait::Mark, POLL);
        // SAFETY: a plain flag of this process.
        if faults::on(Fault::PublishAfterCancel) && unsafe { InterruptPending } != 0 {
            return;
        }
        pgrx::check_for_interrupts!();
    }
}

/// Waits while the wall clock is behind where it was, or raises the error, by the setting.
fn wait_for_clock(behind: Nanos) {
    if refuses(behind) {
        Failure::ClockBehind { behind: Duration::from_nanos(behind) }.raise();
    }
    debug1!("snowflake_pg: waiting for the clock, which is behind by {} ms", behind / 1_000_000);
    wait::on_latch(Wait::Clock, Duration::from_nanos(behind));
}

/// True where sessions are refused while the wall clock is this far behind, not asked to wait.
pub fn refuses(behind: Nanos) -> bool {
    match guc::on_clock_regression() {
        ClockRegression::Continue => false,
        ClockRegression::Wait => behind > LONGEST_WAIT,
        ClockRegression::Error => behind > 0,
    }
}
