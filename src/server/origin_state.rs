//! The information about the replication origin that is available without reading the catalog: whether the background
//! worker has created the origin and, if it has not, the reason. This information is in shared memory, so that sessions
//! that do not find the origin can report the reason.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use flake::{MAX_WINDOW, Nanos};

use crate::message::mark::MarkProblem;
use crate::pg::background_worker;
use crate::pg::startup::Startup;

const NOT_RUN: u32 = 0;
const MADE: u32 = 1;
const NO_FREE_STATE: u32 = 2;

/// The state of the replication origin and of the background worker.
pub struct OriginState {
    state: AtomicU32,
    /// The number of attempts to connect that have not succeeded so far. Each attempt increments this number before it
    /// connects.
    pub unconnected: AtomicU32,
    pub startup: Startup,
    /// The time of the monotonic clock at which a session could not write the mark because another session had set up
    /// the origin, or 0 if the last write succeeded.
    in_use_at: AtomicU64,
}

impl OriginState {
    /// Returns the state before the background worker has run. The postmaster calls this function each time it sets up
    /// shared memory.
    pub fn new() -> OriginState {
        OriginState {
            state: AtomicU32::new(NOT_RUN),
            unconnected: AtomicU32::new(0),
            startup: Startup::now(),
            in_use_at: AtomicU64::new(0),
        }
    }

    /// Records that the origin exists. Sessions also call this function, because after a backend crash, the new shared
    /// memory does not show that the background worker has run.
    pub fn note_made(&self) {
        self.state.store(MADE, Ordering::Relaxed);
    }

    /// Records that no free replication state was available for the origin.
    pub fn note_no_free_state(&self) {
        self.state.store(NO_FREE_STATE, Ordering::Relaxed);
    }

    /// Returns the reason why a session does not find the origin.
    pub fn problem(&self) -> MarkProblem {
        match self.state.load(Ordering::Relaxed) {
            NOT_RUN if background_worker::was_turned_away() => MarkProblem::NoPlace,
            NOT_RUN => MarkProblem::NotMade,
            NO_FREE_STATE => MarkProblem::NoFreeState,
            _ => MarkProblem::Dropped,
        }
    }

    /// Records the result of an attempt to write the mark. `now` is the time of the attempt on the monotonic clock.
    pub fn note_write(&self, problem: Option<&MarkProblem>, now: Nanos) {
        self.in_use_at.store(if problem == Some(&MarkProblem::InUse) { now } else { 0 }, Ordering::Relaxed);
    }

    /// Returns the reason why the last attempt to write the mark was refused, if this reason cannot be found by reading
    /// the mark. The reason is reported for at most one window, because it may have ceased to exist while no session
    /// needed an ID.
    pub fn refused_write(&self, now: Nanos) -> Option<MarkProblem> {
        let noted = self.in_use_at.load(Ordering::Relaxed);
        (noted != 0 && now.abs_diff(noted) <= MAX_WINDOW).then_some(MarkProblem::InUse)
    }
}
