//! What happened now and then: how often, and what the last time was.

use crate::Nanos;
use crate::sync::{AtomicU64, Ordering};

/// How often something happened to the wall clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Incidents {
    /// How often.
    pub count: u64,
    /// The size of the last, 0 without any.
    pub size: Nanos,
    /// What the wall clock showed after the last, 0 without any.
    pub at: Nanos,
}

/// The same, shared. Its numbers are for people: who reads while another adds may see them of two incidents.
#[derive(Default)]
pub(crate) struct Record {
    count: AtomicU64,
    size: AtomicU64,
    at: AtomicU64,
}

impl Record {
    pub(crate) fn add(&self, size: Nanos, at: Nanos) {
        self.size.store(size, Ordering::Relaxed);
        self.at.store(at, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Incidents {
        Incidents {
            count: self.count.load(Ordering::Relaxed),
            size: self.size.load(Ordering::Relaxed),
            at: self.at.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn clear(&self) {
        for number in [&self.count, &self.size, &self.at] {
            number.store(0, Ordering::Relaxed);
        }
    }
}
