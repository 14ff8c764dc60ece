//! The slow path: extending the reservation. An ID is issued only below a mark that is on disk and, where a synchronous
//! standby is configured, has been seen acknowledged by it.
//!
//! Whoever finds half of the reservation used extends it, while the others go on in the rest. Nothing is held while waiting,
//! and whoever waits can be cancelled; a mark that was written meanwhile stays, it is only not made use of.

use std::time::Duration;

use flake::{ClockEvent, Mark, Nanos, OnRegression, Steered};
use pgrx::pg_sys::{InterruptPending, XLogRecPtr};
use pgrx::{PgLogLevel, PgSqlErrorCode, debug1, ereport};

use crate::failure::Failure;
use crate::faults::{self, Fault};
use crate::guc::{self, ClockRegression};
use crate::identity::Identity;
use crate::wait::{self, Wait};
use crate::{clock, mark, replication, shmem};

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
            wait::on_latch(Wait::Mark, POLL);
        }
        return None;
    };
    let steered = state.steer(clock::reading, identity.limits.time(last), &guc::clock_rules());
    report(&steered);
    if let Some(behind) = steered.behind {
        state.release(claim);
        if needed.is_some() {
            wait_for_clock(behind);
        }
        return None;
    }
    let now = steered.clock.time(clock::monotonic());
    let reservation = state.next_reservation(&identity.limits, now, needed.unwrap_or(last + 1));
    let covered = if faults::on(Fault::MarkBehind) { last + 1 } else { reservation.ceiling };
    let written = mark::raise(Mark::above(&identity.stamp, covered), || {
        let published = state.published().filter(|_| !faults::on(Fault::MarkBehind));
        let least = published.map_or(Mark::NOTHING_ISSUED, |ceiling| Mark::above(&identity.stamp, ceiling));
        // After the ceiling: one of a later generation is not meant.
        (state.generation() == generation).then_some(least)
    });
    let written = match written {
        Ok(written) => written?,
        Err(problem) => {
            state.release(claim);
            // Who extends in advance has an ID, and leaves the error to those who get none.
            needed?;
            Failure::MarkMissing { problem }.raise()
        }
    };
    if !faults::on(Fault::PublishBeforeFlush) {
        faults::slow_disk();
        mark::flush(written);
        acknowledged(written);
    }
    let took = clock::monotonic() - begun;
    state.publish(generation, reservation, took);
    state.release(claim);
    debug1!("snowflake_pg: extended the reservation to word {} in {} us", reservation.ceiling, took / 1_000);
    Some(now)
}

/// Waits until the synchronous standby has acknowledged the WAL up to `lsn`, or none is configured any more.
#[allow(unsafe_code)]
pub fn acknowledged(lsn: XLogRecPtr) {
    while !replication::acknowledged(lsn) {
        wait::sleep(Wait::Mark, POLL);
        // SAFETY: a plain flag of this process.
        if faults::on(Fault::PublishAfterCancel) && unsafe { InterruptPending } != 0 {
            return;
        }
        pgrx::check_for_interrupts!();
    }
}

/// What to do while the wall clock is behind where it was, by the setting.
fn wait_for_clock(behind: Nanos) {
    if guc::on_clock_regression() == ClockRegression::Wait && behind <= LONGEST_WAIT {
        wait::on_latch(Wait::Clock, Duration::from_nanos(behind));
    } else {
        Failure::ClockBehind { behind: Duration::from_nanos(behind) }.raise();
    }
}

/// Tells the log what happened to the clock, once.
fn report(steered: &Steered) {
    let Some(event) = steered.event else {
        return;
    };
    let counts = shmem::state().clock_counts();
    let seconds = |by: Nanos| format!("{:.3}", by as f64 / 1e9);
    match event {
        ClockEvent::Regression(by) => {
            let going_on = match guc::clock_rules().on_regression {
                OnRegression::Continue => "IDs go on at the speed of the monotonic clock.",
                OnRegression::Hold => "No more IDs are reserved until the clock is back where it was.",
            };
            let restart = if steered.lead > MAX_LEAD {
                " After a restart no ID would be issued: the last one is more than a day ahead of the clock."
            } else {
                ""
            };
            ereport!(
                PgLogLevel::WARNING,
                PgSqlErrorCode::ERRCODE_WARNING,
                format!("the clock was set back by {} s", seconds(by)),
                format!("{going_on} Clock regression {} since the server started.{restart}", counts.regressions)
            );
        }
        ClockEvent::Jump(by) => ereport!(
            PgLogLevel::WARNING,
            PgSqlErrorCode::ERRCODE_WARNING,
            format!("the clock was set forward by {} s, which is not followed", seconds(by)),
            format!(
                "It is more than \"snowflake_pg.max_clock_jump\". If the clock is right now, a superuser makes IDs follow it \
                 with snowflake_accept_clock(). Clock jump {} since the server started.",
                counts.jumps
            )
        ),
        ClockEvent::Step(by) => ereport!(
            PgLogLevel::LOG,
            PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
            format!("snowflake_pg: the clock was set forward by {} s, and IDs follow it", seconds(by))
        ),
        ClockEvent::Returned => ereport!(
            PgLogLevel::LOG,
            PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
            "snowflake_pg: the clock is back from a jump that was not followed"
        ),
    }
}
