//! Keeping a message that could repeat without end from filling the log.

use std::sync::atomic::{AtomicU64, Ordering};

use flake::Nanos;

use crate::faults::{self, Fault};

/// When a message was written last, and how many were withheld since. In shared memory, for all sessions together.
#[derive(Default)]
pub struct Limiter {
    next: AtomicU64,
    size: AtomicU64,
    withheld: AtomicU64,
}

/// A message about something this many times larger than what was told last is not withheld.
const LARGER: u64 = 4;

impl Limiter {
    /// `Some` with the number of messages withheld so far if a message about something of this size is to be written: none like it was
    /// written in the time `every`. `now` is the monotonic clock.
    pub fn pass(&self, now: Nanos, every: Nanos, size: u64) -> Option<u64> {
        let next = self.next.load(Ordering::Relaxed);
        let larger = size / LARGER >= self.size.load(Ordering::Relaxed).max(1);
        // By compare-and-swap: one of those who ask at the same time.
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

/// What keeps each message from repeating too often.
#[derive(Default)]
pub struct Limiters {
    /// Steps back.
    pub regression: Limiter,
    /// Steps back so far that a restart would refuse to begin.
    pub far: Limiter,
    /// Steps forward that are not followed.
    pub jump: Limiter,
    /// Steps forward that are followed.
    pub step: Limiter,
    /// Returns from such a step.
    pub returned: Limiter,
    /// A monotonic clock that went back.
    pub restored: Limiter,
    /// The end of the layout.
    pub end: Limiter,
}
