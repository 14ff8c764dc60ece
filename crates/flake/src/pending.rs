//! The pending mark: the oldest mark that has been written but is not known to be durable. If a session stops waiting
//! for this mark, the next session waits for the same mark.

use crate::sync::{AtomicU64, Ordering};
use crate::{Nanos, Reservation};

/// Identifies the period between two calls to [`crate::State::unload`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Generation(pub(crate) u64);

/// A mark that has been written, and the reservation whose words are below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The generation to which the reservation belongs.
    pub generation: Generation,
    /// The reservation that can be published once the mark is durable.
    pub reservation: Reservation,
    /// The generator time for which the reservation was made.
    pub time: Nanos,
    /// The monotonic time at which the mark was written.
    pub written: Nanos,
    /// The position in the store's log at which the mark's record ends. It is never 0. The mark is durable once the log
    /// is durable up to this position.
    pub position: u64,
}

/// The shortest and the longest pause between two checks of whether a mark is durable. Between these limits, the pause
/// is the time waited so far divided by `PAUSE_PART`, so that the cost of the checks is small compared with the wait.
const SHORTEST_PAUSE: Nanos = 1_000_000;
pub(crate) const LONGEST_PAUSE: Nanos = 50_000_000;
const PAUSE_PART: Nanos = 8;

/// Returns how long to pause before the next check of whether a mark is durable. `written` is the monotonic time at
/// which the mark was written.
pub fn pause(written: Nanos, now: Nanos) -> Nanos {
    (now.saturating_sub(written) / PAUSE_PART).clamp(SHORTEST_PAUSE, LONGEST_PAUSE)
}

/// A place for one [`Pending`] in shared memory.
///
/// It is a sequence lock: a writer makes `version` odd, stores the fields, and makes `version` even again. No process
/// waits for a writer, because a writer can be stopped at any instruction. While a writer is stopped, readers find
/// nothing, and other writers change nothing.
#[derive(Default)]
pub(crate) struct Place {
    version: AtomicU64,
    generation: AtomicU64,
    ceiling: AtomicU64,
    renew: AtomicU64,
    time: AtomicU64,
    written: AtomicU64,
    /// The position in the log, or 0 if the place is empty.
    position: AtomicU64,
}

impl Place {
    /// Returns the recorded mark, or `None` if there is none or if another process is changing it.
    pub(crate) fn read(&self) -> Option<Pending> {
        self.read_version().1
    }

    /// Records a mark, unless the place contains an older mark of the same generation or a mark of a later generation.
    pub(crate) fn note(&self, pending: &Pending) {
        let (version, noted) = self.read_version();
        if noted.is_none_or(|noted| noted.generation < pending.generation) {
            self.change(version, || {
                self.generation.store(pending.generation.0, Ordering::Release);
                self.ceiling.store(pending.reservation.ceiling, Ordering::Release);
                self.renew.store(pending.reservation.renew, Ordering::Release);
                self.time.store(pending.time, Ordering::Release);
                self.written.store(pending.written, Ordering::Release);
                self.position.store(pending.position, Ordering::Release);
            });
        }
    }

    /// Clears the place if it contains this mark.
    pub(crate) fn forget(&self, pending: &Pending) {
        let (version, noted) = self.read_version();
        if noted == Some(*pending) {
            self.change(version, || self.position.store(0, Ordering::Release));
        }
    }

    fn read_version(&self) -> (u64, Option<Pending>) {
        let version = self.version.load(Ordering::Acquire);
        // Acquire: if a field comes from a later writer, the second read of the version sees the odd version of that
        // writer.
        let pending = Pending {
            generation: Generation(self.generation.load(Ordering::Acquire)),
            reservation: Reservation {
                ceiling: self.ceiling.load(Ordering::Acquire),
                renew: self.renew.load(Ordering::Acquire),
            },
            time: self.time.load(Ordering::Acquire),
            written: self.written.load(Ordering::Acquire),
            position: self.position.load(Ordering::Acquire),
        };
        let whole = version.is_multiple_of(2) && self.version.load(Ordering::Relaxed) == version;
        (version, (whole && pending.position != 0).then_some(pending))
    }

    /// Stores the fields if no other writer has changed them since `version` was read.
    fn change(&self, version: u64, store: impl FnOnce()) {
        // AcqRel: the stores take place after `version` has become odd, and after the stores of the previous writer.
        let taken = version.is_multiple_of(2)
            && self.version.compare_exchange(version, version + 1, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        if taken {
            store();
            self.version.store(version + 2, Ordering::Release);
        }
    }
}
