//! This process's latch, on which the process sleeps.
#![allow(unsafe_code)]

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
