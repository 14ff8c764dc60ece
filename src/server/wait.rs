//! The only place where a session waits. While the session waits, it waits on its latch, reacts to interrupts, and holds no lock.

use std::time::Duration;

use pgrx::{check_for_interrupts, debug1};

use crate::faults::{self, Fault};
use crate::pg::condition_variable::Waiting;
use crate::pg::wait_event::WaitEvent;
use crate::pg::{latch, versions};
use crate::server::stats;

/// The longest sleep, except that a wait of up to twice this time is one sleep. After each sleep, the clock and the settings are read
/// again. The last sleep of a wait must not be cut shortly before its end, because a session that retries earlier than
/// [`flake::Pace`] says takes the IDs of sessions that have waited longer.
const LONGEST: Duration = Duration::from_secs(1);

/// Sleeps for `time`, until the lead has fallen.
pub fn throttled(time: Duration) {
    if faults::deaf_wait(time) {
        return;
    }
    debug1!("snowflake_pg: throttled, sleeping for {} ms", milliseconds(time));
    on_latch(WaitEvent::Throttled, time);
}

/// Sleeps for `time`, rounded up to a millisecond, or for [`LONGEST`], or until the latch is set. A request to cancel the statement
/// or to terminate the session takes effect immediately, as does the end of the postmaster.
pub fn on_latch(what: WaitEvent, time: Duration) {
    sleep(what, time);
    check_for_interrupts!();
}

/// Sleeps without reacting to a cancel request. The caller checks for interrupts afterwards.
pub fn sleep(what: WaitEvent, time: Duration) {
    stats::asleep(what, || latch::sleep(milliseconds(time), faults::shown_event(versions::wait_event(what))));
}

/// Sleeps until another session wakes this session, but for `time` at most. Returns true if this session was woken. A request to
/// cancel the statement or to terminate the session takes effect immediately.
pub fn until_woken(waiting: &Waiting<'_>, what: WaitEvent, time: Duration) -> bool {
    if faults::on(Fault::PollingWait) {
        on_latch(what, Duration::from_millis(1));
        return false;
    }
    stats::asleep(what, || waiting.sleep(milliseconds(time), versions::wait_event(what)))
}

/// Converts a duration to milliseconds for PostgreSQL's wait functions. The result is rounded up, and is at least 1 ms. It is
/// [`LONGEST`] if the duration is more than twice as long.
fn milliseconds(time: Duration) -> i64 {
    let time = if time > 2 * LONGEST { LONGEST } else { time };
    time.as_micros().div_ceil(1_000).max(1) as i64
}
