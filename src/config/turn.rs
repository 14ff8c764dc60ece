//! Limits how far ahead of the clock this session's new requests may run ([`flake::Turn`]).
//!
//! The limit is computed in advance and stored, so that a request for an ID only has to read one number.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

use flake::{Limits, Nanos, Pace, Turn};
use pgrx::prelude::*;

use crate::faults::{self, Fault};

/// How far ahead of the clock a new request for one ID may run. Only this process's single thread accesses the
/// variable. It is atomic because Rust does not allow other mutable statics in safe code.
static AHEAD: AtomicU64 = AtomicU64::new(0);

thread_local!(static TURN: Cell<Turn> = const { Cell::new(Turn::FREE) });

/// Returns how far ahead of the clock a new request for one ID may run.
#[inline(always)]
pub fn ahead() -> Nanos {
    AHEAD.load(Ordering::Relaxed)
}

/// Records that a throttled request of this session has slept until `now`.
pub fn slept(now: Nanos, limits: &Limits, pace: Pace) {
    if faults::on(Fault::GreedySessions) {
        return;
    }
    let mut turn = TURN.get();
    turn.slept(now);
    TURN.set(turn);
    AHEAD.store(turn.ahead(limits, pace), Ordering::Relaxed);
}

/// Returns true if a new request that is throttled can be repeated immediately. See [`Turn::ends`].
pub fn ends(now: Nanos, limits: &Limits, pace: Pace) -> bool {
    let mut turn = TURN.get();
    let ends = turn.ends(now, limits, pace);
    if ends {
        TURN.set(turn);
        AHEAD.store(pace.max_ahead, Ordering::Relaxed);
    }
    ends
}

/// Applies a new value of `snowflake_pg.max_ahead`, in milliseconds. PostgreSQL calls this function in each process,
/// including for the initial value.
#[pg_guard]
pub unsafe extern "C-unwind" fn assign_max_ahead(milliseconds: c_int, _extra: *mut c_void) {
    TURN.set(Turn::FREE);
    // The value is not negative, because PostgreSQL enforces the setting's range.
    AHEAD.store(milliseconds as u64 * 1_000_000, Ordering::Relaxed);
}
