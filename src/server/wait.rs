//! All waits of sessions. A waiting session waits on its latch, responds to interrupts, and holds no locks. The events that
//! the views show are in [`crate::pg::wait_event`].

use std::time::Duration;

use pgrx::{check_for_interrupts, debug1};

use crate::faults::{self, Fault};
use crate::pg::condition_variable::Waiting;
use crate::pg::wait_event::WaitEvent;
use crate::pg::{latch, versions};
use crate::server::stats;

/// The maximum duration of one sleep. As an exception, a wait of up to twice this duration is a single sleep. After
/// each sleep, the clock and the settings are read again. The last sleep of a wait must not be short, because a session
/// that retries earlier than [`flake::Pace`] allows takes IDs away from sessions that have waited longer.
const LONGEST: Duration = Duration::from_secs(1);

/// Sleeps for `time`, so that the lead can decrease.
pub fn throttled(time: Duration) {
    if faults::deaf_wait(time) {
        return;
    }
    debug1!("snowflake_pg: throttled, sleeping for {} ms", milliseconds(time));
    on_latch(WaitEvent::Throttled, time);
}

/// Sleeps until the latch is set, for at most `time`, which is rounded up to a millisecond and limited as described for
/// [`LONGEST`]. A request to cancel the statement or to terminate the session takes effect immediately, as does the
/// exit of the postmaster.
pub fn on_latch(what: WaitEvent, time: Duration) {
    sleep(what, time);
    check_for_interrupts!();
}

/// Sleeps without responding to cancel requests. The caller must check for interrupts afterwards.
pub fn sleep(what: WaitEvent, time: Duration) {
    stats::asleep(what, || latch::sleep(milliseconds(time), faults::shown_event(versions::wait_event(what))));
}

/// Sleeps until another session wakes this session, for at most `time`. Returns true if this session was woken. A
/// request to cancel the statement or to terminate the session takes effect immediately.
pub fn until_woken(waiting: &Waiting<'_>, what: WaitEvent, time: Duration) -> bool {
    if faults::on(Fault::PollingWait) {
        on_latch(what, Duration::from_millis(1));
        return false;
    }
    stats::asleep(what, || waiting.sleep(milliseconds(time), versions::wait_event(what)))
}

/// Converts a duration to milliseconds for PostgreSQL's wait functions. The result is rounded up and is at least 1 ms.
/// If the duration is more than twice as long as [`LONGEST`], the result is [`LONGEST`].
fn milliseconds(time: Duration) -> i64 {
    let time = if time > 2 * LONGEST { LONGEST } else { time };
    time.as_micros().div_ceil(1_000).max(1) as i64
}
