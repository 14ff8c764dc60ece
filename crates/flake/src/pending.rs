//! The oldest mark that is written and not known to be durable. A session that gives up waiting leaves it to the next session.

use crate::sync::{AtomicU64, Ordering};
use crate::{Nanos, Reservation};

/// The state between two calls of [`crate::State::unload`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Generation(pub(crate) u64);

/// A mark that was written, and the reservation whose words lie below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The generation that the reservation is meant for.
    pub generation: Generation,
    /// The reservation that can be published once the mark is durable.
    pub reservation: Reservation,
    /// Generator time for which the reservation was made.
    pub time: Nanos,
    /// The monotonic clock when the mark was written.
    pub written: Nanos,
    /// The end of the mark's record in the log of its store, never 0. The mark is durable once the log is durable up to this
    /// position.
    pub position: u64,
}

/// The shortest and the longest pause between two checks whether a mark is durable, and the part of the time waited so far that
/// lies between them: a check costs little compared with the wait.
const SHORTEST_PAUSE: Nanos = 1_000_000;
pub(crate) const LONGEST_PAUSE: Nanos = 50_000_000;
const PAUSE_PART: Nanos = 8;

/// How long to pause before the next check whether a mark is durable. It was written at `written`, by the monotonic clock.
pub fn pause(written: Nanos, now: Nanos) -> Nanos {
    (now.saturating_sub(written) / PAUSE_PART).clamp(SHORTEST_PAUSE, LONGEST_PAUSE)
}

/// A place for one [`Pending`] in shared memory.
///
/// A sequence lock: a writer makes `version` odd, stores the numbers, and makes it even again. No process waits for a writer,
/// because a writer can be stopped at any instruction. In that case a reader finds nothing, and another writer changes nothing.
#[derive(Default)]
pub(crate) struct Place {
    version: AtomicU64,
    generation: AtomicU64,
    ceiling: AtomicU64,
    renew: AtomicU64,
    time: AtomicU64,
    written: AtomicU64,
    /// 0 while the place is empty.
    position: AtomicU64,
}

impl Place {
    /// The mark that is noted. `None` if there is none, or if another process is changing it.
    pub(crate) fn read(&self) -> Option<Pending> {
        self.read_version().1
    }

    /// Notes a mark unless an older one of the same generation, or one of a later generation, is noted.
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

    /// Forgets a mark if it is the one that is noted.
    pub(crate) fn forget(&self, pending: &Pending) {
        let (version, noted) = self.read_version();
        if noted == Some(*pending) {
            self.change(version, || self.position.store(0, Ordering::Release));
        }
    }

    fn read_version(&self) -> (u64, Option<Pending>) {
        let version = self.version.load(Ordering::Acquire);
        // Acquire: if a number was stored by a later writer, that writer's odd version is visible to the second read of the
        // version.
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

    /// Stores numbers if they have not changed since `version`.
    fn change(&self, version: u64, store: impl FnOnce()) {
        // AcqRel: the stores come after the odd version, and after the stores of the previous writer.
        let taken = version.is_multiple_of(2)
            && self.version.compare_exchange(version, version + 1, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        if taken {
            store();
            self.version.store(version + 2, Ordering::Release);
        }
    }
}
