//! Counts of rare events, with the size and the time of the last event.

use crate::Nanos;
use crate::sync::{AtomicU64, Ordering};

/// The number of times that an event of the wall clock occurred, with the size and the time of the last event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Incidents {
    /// The number of events.
    pub count: u64,
    /// The size of the last event, or 0 if there was none.
    pub size: Nanos,
    /// The wall-clock time just after the last event, or 0 if there was none.
    pub at: Nanos,
}

/// [`Incidents`] in shared memory. While another process adds an event, a reader can see values from two different
/// events. This is acceptable because the values are only displayed.
#[derive(Default)]
pub(crate) struct IncidentRecord {
    count: AtomicU64,
    size: AtomicU64,
    at: AtomicU64,
}

impl IncidentRecord {
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
