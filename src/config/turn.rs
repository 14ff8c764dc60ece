//! How far ahead of the clock a new request of this session may run: [`flake::Turn`], with the limit that follows from it.
//!
//! The limit is stored, so that a request for an ID reads one number, and computes nothing.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

use flake::{Limits, Nanos, Pace, Turn};
use pgrx::prelude::*;

use crate::faults::{self, Fault};

/// How far ahead of the clock a new request for one ID may run. The variable is an atomic only because Rust requires this of a static
/// variable that changes. Each session is a process with one thread.
static AHEAD: AtomicU64 = AtomicU64::new(0);

thread_local!(static TURN: Cell<Turn> = const { Cell::new(Turn::FREE) });

/// Returns how far ahead of the clock a new request for one ID may run.
#[inline(always)]
pub fn ahead() -> Nanos {
    AHEAD.load(Ordering::Relaxed)
}

/// Notes that a throttled request of this session has slept until `now`.
pub fn slept(now: Nanos, limits: &Limits, pace: Pace) {
    if faults::on(Fault::GreedySessions) {
        return;
    }
    let mut turn = TURN.get();
    turn.slept(now);
    TURN.set(turn);
    AHEAD.store(turn.ahead(limits, pace), Ordering::Relaxed);
}

/// Decides about a new request that is throttled. Returns true if it can be repeated immediately, see [`Turn::ends`].
pub fn ends(now: Nanos, limits: &Limits, pace: Pace) -> bool {
    let mut turn = TURN.get();
    let ends = turn.ends(now, limits, pace);
    if ends {
        TURN.set(turn);
        AHEAD.store(pace.max_ahead, Ordering::Relaxed);
    }
    ends
}

/// Takes note of a new value of `snowflake_pg.max_ahead`, in milliseconds. PostgreSQL calls this function in each
/// process, and also with the first value.
#[pg_guard]
pub unsafe extern "C-unwind" fn assign_max_ahead(milliseconds: c_int, _extra: *mut c_void) {
    TURN.set(Turn::FREE);
    // The value is not negative, because PostgreSQL keeps the setting in its range.
    AHEAD.store(milliseconds as u64 * 1_000_000, Ordering::Relaxed);
}
