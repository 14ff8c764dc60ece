//! The slow path: extends the reservation. An ID is issued only if it is below a mark that has been flushed to disk
//! and, if a synchronous standby is configured, acknowledged by it.
//!
//! To extend the reservation, a session prepares a new one, writes its mark, and publishes the reservation once the
//! mark is durable. [`flake::Reservation`] determines how far ahead the new reservation extends. The session that
//! notices that half of the reservation has been used does this, while other sessions continue to draw from the rest. No
//! lock is held during a wait, and every wait can be cancelled. A mark that was written but is not known to be durable
//! is pending in shared memory. The next session that extends the reservation waits for this mark and publishes the
//! reservation, so the work of a session that times out is not lost.

use std::time::Duration;

use flake::{Generation, MAX_WINDOW, MIN_WINDOW, Mark, Nanos, Pending, Reservation};
use pgrx::{debug1, debug2};

use crate::config::guc;
use crate::config::identity::Identity;
use crate::fleet::grant::Snapshot;
use crate::fleet::refusal;
use crate::generator::grant_end::{self, ReservationLimit};
use crate::generator::mark_storage::Raised;
use crate::generator::{clock_behind, durable, mark_storage, slow_mark};
use crate::message::mark::MarkProblem;
use crate::pg::wait_event::WaitEvent;
use crate::server::{clock, log, shmem, stats, wait};

/// The initial and the maximum time that a session sleeps before it checks whether the session that extends the
/// reservation has given up. The sleeping session is woken when the reservation is extended or the other session gives
/// up, but not when the other session is stopped.
const PATIENCE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));

/// The maximum age at which a reservation whose mark has just become durable can still be used to issue IDs at the
/// reservation's time. It is longer than the longest window, so that a server can issue IDs even if its storage takes
/// longer than a window.
const OLDEST: Nanos = 2 * MAX_WINDOW;

/// The right to extend the reservation. It is released when this value goes out of scope, even after an ERROR. A
/// waiting session then takes over.
struct ClaimGuard(flake::Claim);

impl ClaimGuard {
    fn take(in_advance: bool) -> Option<ClaimGuard> {
        shmem::state().claim(clock::monotonic(), in_advance).map(ClaimGuard)
    }

    /// Keeps the claim during a pause. Returns false if another session has made a claim.
    fn keep(&mut self, pause: Nanos) -> bool {
        shmem::state().keep(&mut self.0, clock::monotonic(), pause)
    }
}

impl Drop for ClaimGuard {
    fn drop(&mut self) {
        shmem::state().release(&self.0);
        shmem::extended().wake_one();
    }
}

/// A reservation that is planned for generator time `time`.
struct Plan {
    generation: Generation,
    reservation: Reservation,
    time: Nanos,
}

/// A mark that may not be durable yet.
struct FoundMark {
    pending: Pending,
    /// False if another session wrote the mark.
    written_here: bool,
}

/// A reason why the reservation cannot be extended.
#[derive(Debug)]
enum Hindrance {
    /// The mark has been set in the meantime, so the caller must start over.
    Stale,
    /// The wall clock was set back, and the configuration does not allow the server to continue issuing IDs.
    ClockBehind(Nanos),
    /// Another session is changing the replication origin.
    Locked,
    Mark(MarkProblem),
    /// The required words are above the bound of the grant.
    GrantEnded(Box<Snapshot>),
}

/// Extends the reservation in advance, while half of it is left. Does nothing if another session is extending the
/// reservation or if the reservation cannot be extended. This function does not wait for a standby, because this
/// session already has its ID. Instead, it leaves the mark pending, and a later call publishes the reservation.
#[cold]
pub fn renew(identity: &Identity) {
    let state = shmem::state();
    let now = clock::monotonic();
    if state.postponed(now) {
        return;
    }
    let Some(_claim) = ClaimGuard::take(true) else {
        return;
    };
    let found = match find_or_write(identity, None) {
        Ok(found) => found,
        Err(hindrance) => {
            // No error is raised here, because half of the reservation is left. The first session that cannot get an ID
            // raises the error.
            debug1!("snowflake_pg: not extending the reservation in advance: {hindrance:?}");
            return state.postpone(now, flake::pause(0, now));
        }
    };
    let pending = found.pending;
    if durable::is_durable(pending.position) {
        publish(identity, &pending, found.written_here.then(|| took(&pending)), " in advance");
    } else {
        let now = clock::monotonic();
        state.postpone(now, flake::pause(pending.written, now));
    }
}

/// Extends the reservation to cover all words below `needed`, or waits for the session that is extending it. Returns
/// the time of the reservation, which may be in the past by the time the mark is acknowledged. Returns `None` if the
/// caller must retry.
#[cold]
pub fn extend_to(identity: &Identity, needed: u64) -> Option<Nanos> {
    let state = shmem::state();
    let generation = state.generation();
    let begun = clock::monotonic();
    let (settled, _) = state.settled();
    let mut patience = PATIENCE.0;
    loop {
        if let Some(claim) = ClaimGuard::take(false) {
            return extend(identity, needed, claim);
        }
        debug2!("snowflake_pg: waiting for another session to extend the reservation");
        let waiting = shmem::extended().join();
        // Retry the claim, because this session was not woken if the other session released its claim before this
        // point.
        if let Some(claim) = ClaimGuard::take(false) {
            drop(waiting);
            return extend(identity, needed, claim);
        }
        let extended = state.published().is_some_and(|ceiling| ceiling >= needed);
        if extended || state.generation() != generation || wait::until_woken(&waiting, WaitEvent::Mark, patience) {
            let (written, time) = state.settled();
            return (written != settled && is_recent(written, time, begun)).then_some(time);
        }
        patience = (2 * patience).min(PATIENCE.1);
    }
}

/// Returns true if IDs may be issued at `time`, the time of a reservation whose mark was written at `written`. `begun`
/// is the time at which this session began to wait.
fn is_recent(written: Nanos, time: Nanos, begun: Nanos) -> bool {
    let now = clock::monotonic();
    // The monotonic clock may have gone backward in the meantime.
    let Some(age) = now.checked_sub(written) else {
        return false;
    };
    // Generator time may have been moved in the meantime, for example by snowflake_accept_clock().
    let moved = shmem::state().clock().time(now) > time.saturating_add(age).saturating_add(OLDEST);
    !moved && (age <= OLDEST || written >= begun)
}

fn extend(identity: &Identity, needed: u64, mut claim: ClaimGuard) -> Option<Nanos> {
    let begun = clock::monotonic();
    let FoundMark { pending, written_here } = match find_or_write(identity, Some(needed)) {
        Ok(found) => found,
        Err(hindrance) => {
            drop(claim);
            match hindrance {
                Hindrance::Stale | Hindrance::Locked => {
                    debug1!("snowflake_pg: not extending the reservation, because the mark was set meanwhile");
                }
                Hindrance::ClockBehind(behind) => clock_behind::wait_or_raise(behind),
                Hindrance::Mark(problem) => problem.raise(),
                Hindrance::GrantEnded(snapshot) => refusal::grant_ended(identity, &snapshot).raise(),
            }
            return None;
        }
    };
    let mut waited = written_here;
    let mut told = false;
    // Check this before the flush below, which can take a long time. Another session may have written the mark long
    // ago.
    slow_mark::waiting(&pending);
    while !durable::is_durable(pending.position) {
        slow_mark::waiting(&pending);
        if !told {
            debug1!("snowflake_pg: waiting for the synchronous standby to acknowledge the mark");
            told = true;
        }
        waited = true;
        let pause = flake::pause(pending.written, clock::monotonic());
        if shmem::state().generation() != pending.generation || !claim.keep(pause) {
            return None;
        }
        durable::wait_for_standby(pause);
    }
    if !told {
        slow_mark::flushed(&pending, begun);
    }
    let published = publish(identity, &pending, waited.then(|| took(&pending)), "");
    drop(claim);
    (published && waited && is_recent(pending.written, pending.time, begun)).then_some(pending.time)
}

/// Returns how long this mark, which is now durable, took to become durable.
fn took(pending: &Pending) -> Nanos {
    clock::monotonic().saturating_sub(pending.written)
}

/// Returns the pending mark. If there is none, writes a mark for all words below `needed`, or only for the current time
/// if `needed` is `None`.
fn find_or_write(identity: &Identity, needed: Option<u64>) -> Result<FoundMark, Hindrance> {
    let pending = shmem::state().pending();
    // The assignment is read after the generation of the mark, which ends with the assignment.
    if !shmem::state().has_assignment(identity.assignment) {
        return Err(Hindrance::Stale);
    }
    if let Some(pending) = pending {
        return Ok(FoundMark { pending, written_here: false });
    }
    let plan = prepare(identity, needed)?;
    // A session that already has its ID does not wait for a session that is changing the origin.
    let patient = needed.is_some();
    persist(identity, &plan, patient).map(|pending| FoundMark { pending, written_here: true })
}

/// Compares the clocks and plans the next reservation.
fn prepare(identity: &Identity, needed: Option<u64>) -> Result<Plan, Hindrance> {
    let state = shmem::state();
    // The generation is read before `last`, which is `None` if the mark has been set in the meantime.
    let generation = state.generation();
    let last = state.last().ok_or(Hindrance::Stale)?;
    if !state.has_assignment(identity.assignment) {
        return Err(Hindrance::Stale);
    }
    let disciplined = state.discipline(clock::reading, identity.limits.time(last), &guc::clock_rules());
    log::clock(&disciplined);
    if let Some(behind) = disciplined.behind {
        return Err(Hindrance::ClockBehind(behind));
    }
    debug2!(
        "snowflake_pg: compared the clocks, generator time leads the wall clock by {} us",
        disciplined.lead / 1_000
    );
    let time = disciplined.clock.time(clock::monotonic());
    let reservation = state.next_reservation(&identity.limits, time, needed.unwrap_or(last + 1));
    // If the extension is in advance, a reservation is useful only if it is above the published one.
    let needed = needed.unwrap_or_else(|| state.published().map_or(last + 1, |ceiling| ceiling + 1));
    let reservation = grant_end::within_grant(identity, reservation, needed).map_err(|limit| match limit {
        ReservationLimit::Changed => Hindrance::Stale,
        ReservationLimit::Ended(snapshot) => Hindrance::GrantEnded(snapshot),
    })?;
    Ok(Plan { generation, reservation, time })
}

/// Writes the mark of a plan. The mark remains pending, because it has not been flushed yet.
fn persist(identity: &Identity, plan: &Plan, patient: bool) -> Result<Pending, Hindrance> {
    let state = shmem::state();
    let written = mark_storage::raise(Mark::above(&identity.stamp, plan.reservation.ceiling), patient, || {
        let least = state.published().map_or(Mark::NOTHING_ISSUED, |ceiling| Mark::above(&identity.stamp, ceiling));
        // The generation is read after the ceiling, because the ceiling may belong to a later generation.
        (state.generation() == plan.generation).then_some(least)
    });
    shmem::origin_state().note_write(written.as_ref().err(), clock::monotonic());
    let position = match written.map_err(Hindrance::Mark)? {
        Raised::To(position) => position,
        Raised::Unwanted => return Err(Hindrance::Stale),
        Raised::Locked => return Err(Hindrance::Locked),
    };
    let Plan { generation, reservation, time } = *plan;
    let pending = Pending { generation, reservation, time, written: clock::monotonic(), position };
    state.note(&pending);
    Ok(pending)
}

/// Makes the words of a reservation available and wakes the sessions that are waiting for them. `took` is how long the
/// mark of the reservation took to become durable, if this session has measured that time.
fn publish(identity: &Identity, pending: &Pending, took: Option<Nanos>, how: &str) -> bool {
    let state = shmem::state();
    // The mark may have been removed or lowered since it was written. The next attempt to write the mark reports this.
    if !mark_storage::covers(Mark::above(&identity.stamp, pending.reservation.ceiling)) {
        state.forget(pending);
        shmem::extended().wake_all();
        return false;
    }
    let published = state.settle(pending, took);
    shmem::extended().wake_all();
    if !published {
        debug1!("snowflake_pg: the mark was set while the reservation was extended");
        return false;
    }
    stats::extended(took.unwrap_or(0));
    debug1!(
        "snowflake_pg: extended the reservation{how} to word {} in {} us",
        pending.reservation.ceiling,
        took.unwrap_or(0) / 1_000
    );
    log::end_of_layout(identity, clock::wall());
    true
}

/// Compares the clocks because generator time seems to be wrong. Returns true if generator time has moved far ahead as
/// a result.
#[cold]
pub fn recheck_clock(identity: &Identity) -> bool {
    let state = shmem::state();
    let Some(last) = state.last() else {
        return false;
    };
    let before = state.clock().offset;
    let disciplined = state.discipline(clock::reading, identity.limits.time(last), &guc::clock_rules());
    log::clock(&disciplined);
    // Generator time may have been moved by this comparison or by that of another session.
    state.clock().offset.wrapping_sub(before) as i64 >= MIN_WINDOW as i64
}
