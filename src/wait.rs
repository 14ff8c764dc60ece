//! The only place where a session waits: on its latch, with interrupts served, holding nothing.

use std::time::Duration;

use pgrx::{check_for_interrupts, debug1, pg_sys};

use crate::faults::{self, Fault};
use crate::{major, stats};

/// Longest single sleep. A longer wait is slept in pieces, after each of which the clock and the settings are read again.
const LONGEST: Duration = Duration::from_secs(1);

/// What a session waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Wait {
    /// The clock, for the lead is at its limit.
    Throttled,
    /// The mark: another session extends it, or the synchronous standby has yet to acknowledge it.
    Mark,
    /// The wall clock, which was set back.
    Clock,
}

impl Wait {
    /// All of them.
    pub const ALL: [Wait; 3] = [Wait::Throttled, Wait::Mark, Wait::Clock];

    /// The name that views show.
    pub fn name(self) -> &'static str {
        match self {
            Wait::Throttled => "throttled",
            Wait::Mark => "mark",
            Wait::Clock => "clock",
        }
    }
}

/// Sleeps until a lead has fallen.
pub fn throttled(time: Duration) {
    if faults::on(Fault::DeafWait) {
        return std::thread::sleep(time * 10);
    }
    debug1!("snowflake_pg: throttled, sleeping for {} ms", milliseconds(time));
    on_latch(Wait::Throttled, time);
}

/// Sleeps for `time`, rounded up to a millisecond, or until the latch is set. Cancelling the statement or ending the
/// session answers at once; so does the end of the postmaster.
pub fn on_latch(what: Wait, time: Duration) {
    sleep(what, time);
    check_for_interrupts!();
}

/// The sleep without what answers a cancel.
#[allow(unsafe_code)]
pub fn sleep(what: Wait, time: Duration) {
    let events = pg_sys::WL_LATCH_SET | pg_sys::WL_TIMEOUT | pg_sys::WL_EXIT_ON_PM_DEATH;
    let event = if faults::on(Fault::HiddenWait) { 0 } else { major::wait_event(what) };
    // SAFETY: MyLatch is this process's own latch from start to end, and WaitLatch may be called where interrupts may be
    // served, as in any SQL function.
    stats::asleep(what, || unsafe {
        pg_sys::WaitLatch(pg_sys::MyLatch, events as i32, milliseconds(time), event);
        pg_sys::ResetLatch(pg_sys::MyLatch);
    });
}

fn milliseconds(time: Duration) -> i64 {
    time.min(LONGEST).as_micros().div_ceil(1_000).max(1) as i64
}
