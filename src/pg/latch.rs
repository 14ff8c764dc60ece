//! The latch of this process, on which the process sleeps.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::Duration;

use pgrx::pg_sys;

/// Sleeps for this many milliseconds, or until the latch is set or the postmaster exits. `event` is the wait event that
/// `pg_stat_activity` shows. The sleep does not respond to a cancel request, so the caller must check for interrupts
/// afterwards.
pub fn sleep(milliseconds: i64, event: u32) {
    wait(Some(milliseconds), event);
}

/// Sleeps until the latch is set, for at most `time`. If `time` is `None`, only the latch ends the sleep. Exits this
/// process if the postmaster has exited. `time` is rounded up to a full millisecond.
pub fn sleep_until_set(time: Option<Duration>) {
    wait(time.map(milliseconds), pg_sys::PG_WAIT_EXTENSION);
}

fn wait(milliseconds: Option<i64>, event: u32) {
    let timeout = if milliseconds.is_some() { pg_sys::WL_TIMEOUT } else { 0 };
    let events = pg_sys::WL_LATCH_SET | pg_sys::WL_EXIT_ON_PM_DEATH | timeout;
    // SAFETY: MyLatch is valid as long as the process exists. WaitLatch may be called wherever interrupts may be
    // processed, as in any SQL function. The latch is reset before the caller checks why it was set.
    unsafe {
        pg_sys::WaitLatch(pg_sys::MyLatch, events as i32, milliseconds.unwrap_or(-1), event);
        pg_sys::ResetLatch(pg_sys::MyLatch);
    }
}

/// Returns a time in milliseconds, rounded up and limited to what PostgreSQL accepts.
fn milliseconds(time: Duration) -> i64 {
    time.as_micros().div_ceil(1_000).min(i32::MAX as u128) as i64
}

/// The socket event for which a process waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    Read,
    Write,
    ReadOrWrite,
}

/// Sleeps until the socket is ready, the latch is set, or `time` has passed. Exits this process if the postmaster has
/// exited. Returns true if the socket is ready. `time` is rounded up to a full millisecond.
pub fn sleep_on_socket(socket: i32, readiness: Readiness, time: Duration) -> bool {
    let ready = match readiness {
        Readiness::Read => pg_sys::WL_SOCKET_READABLE,
        Readiness::Write => pg_sys::WL_SOCKET_WRITEABLE,
        Readiness::ReadOrWrite => pg_sys::WL_SOCKET_READABLE | pg_sys::WL_SOCKET_WRITEABLE,
    };
    let events = ready | pg_sys::WL_LATCH_SET | pg_sys::WL_TIMEOUT | pg_sys::WL_EXIT_ON_PM_DEATH;
    // SAFETY: MyLatch is valid as long as the process exists, and the socket is open. The latch is reset before the
    // caller checks why it was set.
    unsafe {
        let (time, event) = (milliseconds(time), pg_sys::PG_WAIT_EXTENSION);
        let happened = pg_sys::WaitLatchOrSocket(pg_sys::MyLatch, events as i32, socket, time, event) as u32;
        pg_sys::ResetLatch(pg_sys::MyLatch);
        happened & ready != 0
    }
}

/// The latch of a process that other processes can wake. It is stored in shared memory.
#[derive(Default)]
pub struct SharedLatch(AtomicPtr<pg_sys::Latch>);

impl SharedLatch {
    /// Makes this process the one that other processes wake.
    pub fn own(&self) {
        // SAFETY: the variable is set as long as the process exists.
        self.0.store(unsafe { pg_sys::MyLatch }, Ordering::Release);
    }

    /// Wakes the process, if there is one.
    pub fn set(&self) {
        let latch = self.0.load(Ordering::Acquire);
        if !latch.is_null() {
            // SAFETY: the latch is part of an entry of PostgreSQL's process array. The array is in shared memory, has
            // the same address in all processes and exists as long as the server. If the process has exited, its entry
            // is free or belongs to a different process. That process then wakes up without a reason, which every
            // process that waits on its latch must be able to handle.
            unsafe { pg_sys::SetLatch(latch) };
        }
    }
}
