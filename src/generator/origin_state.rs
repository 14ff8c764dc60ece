//! What is known about the replication origin without reading the catalog: whether the background worker has created
//! it, and if not, why. It is in shared memory, so that sessions that find no origin can report the reason.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use flake::{MAX_WINDOW, Nanos};

use crate::message::error::MarkProblem;
use crate::pg::background_worker;
use crate::pg::startup::Startup;

const NOT_RUN: u32 = 0;
const MADE: u32 = 1;
const NO_FREE_STATE: u32 = 2;

/// What the background worker has done so far.
pub struct OriginState {
    state: AtomicU32,
    /// How many attempts to connect have not succeeded so far. Each attempt increases it first.
    pub unconnected: AtomicU32,
    /// How the server started.
    pub startup: Startup,
    /// The time by the monotonic clock when a session could not write because another session had set up the origin; 0
    /// if the last write succeeded.
    in_use_at: AtomicU64,
}

impl OriginState {
    /// The state before the background worker has run. Called in the postmaster each time it sets up shared memory.
    pub fn new() -> OriginState {
        OriginState {
            state: AtomicU32::new(NOT_RUN),
            unconnected: AtomicU32::new(0),
            startup: Startup::now(),
            in_use_at: AtomicU64::new(0),
        }
    }

    /// Notes that the origin exists. Sessions note it as well, because after a crash of a backend the shared memory
    /// does not record that the background worker has run.
    pub fn note_made(&self) {
        self.state.store(MADE, Ordering::Relaxed);
    }

    /// Notes that there was no free replication state for the origin.
    pub fn note_no_free_state(&self) {
        self.state.store(NO_FREE_STATE, Ordering::Relaxed);
    }

    /// Why a session finds no origin.
    pub fn problem(&self) -> MarkProblem {
        match self.state.load(Ordering::Relaxed) {
            NOT_RUN if background_worker::was_turned_away() => MarkProblem::NoPlace,
            NOT_RUN => MarkProblem::NotMade,
            NO_FREE_STATE => MarkProblem::NoFreeState,
            _ => MarkProblem::Dropped,
        }
    }

    /// Notes the result of an attempt to write the mark, at `now` by the monotonic clock.
    pub fn note_write(&self, problem: Option<&MarkProblem>, now: Nanos) {
        self.in_use_at.store(if problem == Some(&MarkProblem::InUse) { now } else { 0 }, Ordering::Relaxed);
    }

    /// Why the last attempt to write the mark was refused, if reading the mark does not show the reason. The reason is
    /// reported for one window at most, because it may have disappeared while no session needed an ID.
    pub fn refused_write(&self, now: Nanos) -> Option<MarkProblem> {
        let noted = self.in_use_at.load(Ordering::Relaxed);
        (noted != 0 && now.abs_diff(noted) <= MAX_WINDOW).then_some(MarkProblem::InUse)
    }
}
