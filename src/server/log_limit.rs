//! Limits how often a message is written, so that the message cannot fill the log.

use std::sync::atomic::{AtomicU64, Ordering};

use flake::Nanos;

use crate::faults::{self, Fault};

/// When a message can be written again, and how many messages have been suppressed since the last one that was written. This state
/// is in shared memory and applies to all sessions together.
#[derive(Default)]
pub struct Limiter {
    next: AtomicU64,
    size: AtomicU64,
    withheld: AtomicU64,
}

/// A message is not suppressed if the event that it reports is at least this many times as large as the event in the last message.
const LARGER: u64 = 4;

impl Limiter {
    /// Decides whether a message about an event of size `size` can be written. The message can be written if no message was
    /// written within the time `every`, or if the event is much larger than the last event. Returns the number of messages that
    /// were suppressed before this message, or returns `None` if this message is suppressed. `now` is the time on the monotonic
    /// clock.
    pub fn pass(&self, now: Nanos, every: Nanos, size: u64) -> Option<u64> {
        let next = self.next.load(Ordering::Relaxed);
        let larger = size / LARGER >= self.size.load(Ordering::Relaxed).max(1);
        // Because of the compare-and-swap, only one of several concurrent callers passes. A time that is too far ahead was stored
        // before the monotonic clock went back.
        let passed = (next <= now || next > now + 2 * every || larger)
            && self.next.compare_exchange(next, now + every, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if passed || faults::on(Fault::TalkativeLog) {
            self.size.store(size, Ordering::Relaxed);
            return Some(self.withheld.swap(0, Ordering::Relaxed));
        }
        self.withheld.fetch_add(1, Ordering::Relaxed);
        None
    }
}

/// The limiters, one for each kind of message.
#[derive(Default)]
pub struct Limiters {
    /// The limiter for steps back.
    pub regression: Limiter,
    /// The limiter for steps back so far that the server would not issue IDs after a restart.
    pub far: Limiter,
    /// The limiter for steps forward that IDs do not follow.
    pub jump: Limiter,
    /// The limiter for steps forward that IDs follow.
    pub step: Limiter,
    /// The limiter for returns from a step forward that IDs did not follow.
    pub returned: Limiter,
    /// The limiter for a monotonic clock that went back.
    pub restored: Limiter,
    /// The limiter for the end of the layout.
    pub end: Limiter,
    /// The limiter for a witness that cannot be locked or was removed.
    pub witness: Limiter,
    /// The limiter for a mark that is not durable for a long time.
    pub slow_mark: Limiter,
}
