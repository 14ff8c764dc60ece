//! Limits how often a message is logged, so that it cannot fill the log.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use flake::Nanos;

use crate::faults::{self, Fault};
use crate::server::clock;

/// The minimum interval between two log messages about the same kind of clock event, unless an event is much larger
/// than the last one that was logged. Otherwise, a clock that is repeatedly set back and forth, for example by two
/// daemons, would fill the log.
pub const CLOCK_EVERY: Nanos = 60_000_000_000;

/// The minimum interval between two warnings that the layout ends soon. The warning is logged once a day while IDs are
/// drawn.
pub const END_EVERY: Nanos = 86_400_000_000_000;

/// The minimum interval between two warnings about a mark that is slow to become durable.
pub const SLOW_MARK_EVERY: Nanos = 60_000_000_000;

/// The minimum interval between two log messages about the removal of the witness.
pub const WITNESS_EVERY: Nanos = 3_600_000_000_000;

/// The minimum interval between two warnings of the registrar that the clocks of this server and of the registry
/// differ.
pub const SKEW_EVERY: Duration = Duration::from_secs(60);

/// When a message can be logged again, and how many messages have been suppressed since the last one that was logged.
/// This state is in shared memory and applies to all sessions together.
#[derive(Default)]
pub struct Limiter {
    next: AtomicU64,
    size: AtomicU64,
    withheld: AtomicU64,
}

/// A message is not suppressed if its event is at least this many times as large as the event of the last message.
const LARGER: u64 = 4;

impl Limiter {
    /// Determines whether a message about an event of size `size` can be logged. It can be logged if no message was
    /// logged within the time `every`, or if the event is much larger than the last one. Returns the number of messages
    /// that were suppressed before this one, or `None` if this message is suppressed.
    pub fn pass(&self, every: Nanos, size: u64) -> Option<u64> {
        let (now, next) = (clock::monotonic(), self.next.load(Ordering::Relaxed));
        let larger = size / LARGER >= self.size.load(Ordering::Relaxed).max(1);
        // The compare-and-swap ensures that only one of several concurrent callers passes. If the stored time is too
        // far ahead, it was stored before the monotonic clock went backward.
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
    /// The limiter for backward steps.
    pub regression: Limiter,
    /// The limiter for backward steps that are so large that the server would not issue IDs after a restart.
    pub far: Limiter,
    /// The limiter for forward steps that IDs do not follow.
    pub jump: Limiter,
    /// The limiter for forward steps that IDs follow.
    pub step: Limiter,
    /// The limiter for returns from a forward step that IDs did not follow.
    pub returned: Limiter,
    /// The limiter for a monotonic clock that has gone backward.
    pub restored: Limiter,
    /// The limiter for the end of the layout.
    pub end: Limiter,
    /// The limiter for a witness that cannot be locked or was removed.
    pub witness: Limiter,
    /// The limiter for marks that are slow to become durable.
    pub slow_mark: Limiter,
}
