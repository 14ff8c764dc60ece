//! Limits how often a message is written, so that it cannot fill the log.

use std::sync::atomic::{AtomicU64, Ordering};

use flake::Nanos;

use crate::faults::{self, Fault};

/// When a message can be written again, and how many were suppressed since the last one. In shared memory, for all sessions together.
#[derive(Default)]
pub struct Limiter {
    next: AtomicU64,
    size: AtomicU64,
    withheld: AtomicU64,
}

/// A message is not suppressed if its subject is this many times larger than that of the last message.
const LARGER: u64 = 4;

impl Limiter {
    /// `Some` with the number of suppressed messages if a message about something of this size can be written, because no such message
    /// was written within the time `every`. `now` is the monotonic clock.
    pub fn pass(&self, now: Nanos, every: Nanos, size: u64) -> Option<u64> {
        let next = self.next.load(Ordering::Relaxed);
        let larger = size / LARGER >= self.size.load(Ordering::Relaxed).max(1);
        // With compare-and-swap, only one of several concurrent callers passes.
        // A time too far ahead is from before the monotonic clock went back.
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

/// The limiters, one for each message.
#[derive(Default)]
pub struct Limiters {
    /// Steps back.
    pub regression: Limiter,
    /// Steps back so far that the server would not issue IDs after a restart.
    pub far: Limiter,
    /// Steps forward that IDs do not follow.
    pub jump: Limiter,
    /// Steps forward that IDs follow.
    pub step: Limiter,
    /// Returns from such a step.
    pub returned: Limiter,
    /// A monotonic clock that went back.
    pub restored: Limiter,
    /// The end of the layout.
    pub end: Limiter,
}
