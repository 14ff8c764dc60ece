//! The only place where a session waits: on its latch, with interrupts served, holding nothing.

use std::time::Duration;

use pgrx::{check_for_interrupts, debug1, pg_sys};

use crate::faults::{self, Fault};
use crate::major;

/// Longest single sleep. A longer wait is slept in pieces, after each of which the clock and the settings are read again.
const LONGEST: Duration = Duration::from_secs(1);

/// Sleeps for `time`, rounded up to a millisecond, or until the latch is set. Cancelling the statement or ending the
/// session answers at once; so does the end of the postmaster.
#[allow(unsafe_code)]
pub fn throttled(time: Duration) {
    if faults::on(Fault::DeafWait) {
        return std::thread::sleep(time);
    }
    let ms = time.min(LONGEST).as_micros().div_ceil(1_000).max(1);
    debug1!("snowflake_pg: throttled, sleeping for {ms} ms");
    let events = pg_sys::WL_LATCH_SET | pg_sys::WL_TIMEOUT | pg_sys::WL_EXIT_ON_PM_DEATH;
    // SAFETY: MyLatch is this process's own latch from start to end, and WaitLatch may be called where interrupts may be
    // served, as in any SQL function.
    unsafe {
        pg_sys::WaitLatch(pg_sys::MyLatch, events as i32, ms as i64, major::throttled_wait_event());
        pg_sys::ResetLatch(pg_sys::MyLatch);
    }
    check_for_interrupts!();
}
