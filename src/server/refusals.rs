//! Counts the replicated rows that guards have refused, and stores the ID and the time of the last refusal. Each value
//! is a separate atomic, so a view can show the ID of one refusal together with the time of another.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use flake::Nanos;

/// The refusals of all guards since the server started or the statistics were reset.
#[derive(Default)]
pub struct Refusals {
    count: AtomicU64,
    id: AtomicI64,
    /// The time of the wall clock, in nanoseconds since the Unix epoch, or 0 if there was no refusal.
    at: AtomicU64,
}

impl Refusals {
    pub fn add(&self, id: i64, now: Nanos) {
        self.id.store(id, Ordering::Relaxed);
        self.at.store(now, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Returns the ID and the time of the last refusal.
    pub fn last(&self) -> Option<(i64, Nanos)> {
        let at = self.at.load(Ordering::Relaxed);
        (at != 0).then(|| (self.id.load(Ordering::Relaxed), at))
    }

    pub fn reset(&self) {
        self.count.store(0, Ordering::Relaxed);
        self.at.store(0, Ordering::Relaxed);
    }
}
