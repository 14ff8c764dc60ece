//! This process's latch, on which the process sleeps.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::Duration;

use pgrx::pg_sys;

/// Sleeps for this many milliseconds, or until the latch is set or the postmaster ends. `event` is the wait event that
/// `pg_stat_activity` shows. The sleep does not respond to a cancel request, so the caller must check for interrupts afterwards.
pub fn sleep(milliseconds: i64, event: u32) {
    let events = pg_sys::WL_LATCH_SET | pg_sys::WL_TIMEOUT | pg_sys::WL_EXIT_ON_PM_DEATH;
    // SAFETY: MyLatch is the latch of this process as long as the process lives. WaitLatch may be called wherever interrupts may
    // be processed, as in any SQL function.
    unsafe {
        pg_sys::WaitLatch(pg_sys::MyLatch, events as i32, milliseconds, event);
        pg_sys::ResetLatch(pg_sys::MyLatch);
    }
}

/// What a process waits for on a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    Read,
    Write,
    ReadOrWrite,
}

/// Sleeps until the socket is ready, the latch is set, or `time` has passed, and ends this process if the postmaster has ended. Returns
/// true if the socket is ready. `time` is rounded up to a millisecond.
pub fn sleep_on_socket(socket: i32, readiness: Readiness, time: Duration) -> bool {
    let ready = match readiness {
        Readiness::Read => pg_sys::WL_SOCKET_READABLE,
        Readiness::Write => pg_sys::WL_SOCKET_WRITEABLE,
        Readiness::ReadOrWrite => pg_sys::WL_SOCKET_READABLE | pg_sys::WL_SOCKET_WRITEABLE,
    };
    let events = ready | pg_sys::WL_LATCH_SET | pg_sys::WL_TIMEOUT | pg_sys::WL_EXIT_ON_PM_DEATH;
    let milliseconds = time.as_micros().div_ceil(1_000).min(i32::MAX as u128) as _;
    // SAFETY: MyLatch is the latch of this process as long as the process lives, and the socket is open. The latch is reset before the
    // caller looks at what it has been set for.
    unsafe {
        let event = pg_sys::PG_WAIT_EXTENSION;
        let happened = pg_sys::WaitLatchOrSocket(pg_sys::MyLatch, events as i32, socket, milliseconds, event) as u32;
        pg_sys::ResetLatch(pg_sys::MyLatch);
        happened & ready != 0
    }
}

/// Sleeps until the latch is set, but for `time` at most. Without a time, nothing but the latch ends the sleep. Ends this process if
/// the postmaster has ended.
pub fn sleep_until_set(time: Option<Duration>) {
    let events = pg_sys::WL_LATCH_SET | pg_sys::WL_EXIT_ON_PM_DEATH;
    let (events, milliseconds) = match time {
        Some(time) => (events | pg_sys::WL_TIMEOUT, time.as_micros().div_ceil(1_000).min(i32::MAX as u128) as _),
        None => (events, -1),
    };
    // SAFETY: as in `sleep_on_socket`.
    unsafe {
        pg_sys::WaitLatch(pg_sys::MyLatch, events as i32, milliseconds, pg_sys::PG_WAIT_EXTENSION);
        pg_sys::ResetLatch(pg_sys::MyLatch);
    }
}

/// The latch of a process that other processes wake. The value is in shared memory.
#[derive(Default)]
pub struct SharedLatch(AtomicPtr<pg_sys::Latch>);

impl SharedLatch {
    /// Makes this process the one that is woken.
    pub fn own(&self) {
        // SAFETY: the variable is set as long as the process lives.
        self.0.store(unsafe { pg_sys::MyLatch }, Ordering::Release);
    }

    /// Wakes the process, if there is one.
    pub fn set(&self) {
        let latch = self.0.load(Ordering::Acquire);
        if !latch.is_null() {
            // SAFETY: the latch is part of an entry of PostgreSQL's process array, which is in shared memory at the same address in all
            // processes and lives as long as the server. If the process has ended, its entry is free or that of another process, which
            // wakes without a reason, as every process that waits on its latch allows for.
            unsafe { pg_sys::SetLatch(latch) };
        }
    }
}
