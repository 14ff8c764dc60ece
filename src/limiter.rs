//! Keeping a message that could repeat without end from filling the log.

use std::sync::atomic::{AtomicU64, Ordering};

use flake::Nanos;

use crate::clock;
use crate::faults::{self, Fault};

/// When a message was written last, and how many were withheld since. In shared memory, for all sessions together.
#[derive(Default)]
pub struct Limiter {
    next: AtomicU64,
    withheld: AtomicU64,
}

impl Limiter {
    /// `Some` where the message is to be written, for none was in the time `every`, with the number of those withheld since.
    pub fn pass(&self, every: Nanos) -> Option<u64> {
        let now = clock::monotonic();
        let next = self.next.load(Ordering::Relaxed);
        // By compare-and-swap: one of those who ask at the same time.
        let passed =
            next <= now && self.next.compare_exchange(next, now + every, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if passed || faults::on(Fault::TalkativeLog) {
            return Some(self.withheld.swap(0, Ordering::Relaxed));
        }
        self.withheld.fetch_add(1, Ordering::Relaxed);
        None
    }
}
