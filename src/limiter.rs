//! Keeping a message that could repeat without end from filling the log.

use std::sync::atomic::{AtomicU64, Ordering};

use flake::Nanos;

use crate::clock;
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
    /// `Some` where a message about something of this size is to be written, for none like it was in the time `every`, with
    /// the number of those withheld since.
    pub fn pass(&self, every: Nanos, size: u64) -> Option<u64> {
        let now = clock::monotonic();
        let next = self.next.load(Ordering::Relaxed);
        let larger = size / LARGER >= self.size.load(Ordering::Relaxed).max(1);
        // By compare-and-swap: one of those who ask at the same time.
        let passed = (next <= now || larger)
            && self.next.compare_exchange(next, now + every, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if passed || faults::on(Fault::TalkativeLog) {
            self.size.store(size, Ordering::Relaxed);
            return Some(self.withheld.swap(0, Ordering::Relaxed));
        }
        self.withheld.fetch_add(1, Ordering::Relaxed);
        None
    }
}
