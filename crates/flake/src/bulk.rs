//! Fairness between bulk requests, which are for more than one word, and requests for a single word. Neither kind keeps the other
//! waiting forever.
//!
//! Bulk requests leave half of the run-ahead to single words. If single words take all of it, a bulk request becomes *overdue* and
//! is granted like a single word.

use crate::Nanos;
use crate::sync::{AtomicU64, Ordering};

/// Overdue requests together get this fraction, one in four, of the words of the layout.
const OVERDUE_PART: Nanos = 4;

/// The longest time that the clock takes for the words of one grant: half of the longest run-ahead, 10 s.
const LONGEST_SPAN: Nanos = 5_000_000_000;

/// If a noted time is further ahead of the monotonic clock than this, the clock has gone back since it was noted.
const LONGEST_PAUSE: Nanos = 2 * OVERDUE_PART * LONGEST_SPAN;

/// When bulk requests were granted, by the monotonic clock.
#[derive(Default)]
pub struct Bulk {
    /// When the next overdue request can be granted.
    overdue_at: AtomicU64,
    /// When a bulk request that was not overdue was last granted.
    granted_at: AtomicU64,
}

impl Bulk {
    /// True if a bulk request that has been throttled for `max_ahead` can run ahead as far as single words. This is so if no other
    /// bulk request was granted meanwhile, because then single words keep it waiting. Overdue requests together get a fraction of
    /// the words of the layout. The rest is left for single words.
    pub fn takes_overdue(&self, now: Nanos, max_ahead: Nanos) -> bool {
        let overdue_at = self.overdue_at.load(Ordering::Relaxed);
        let granted_at = self.granted_at.load(Ordering::Relaxed);
        let from_before = |time| time > now + LONGEST_PAUSE;
        (overdue_at <= now || from_before(overdue_at))
            && (now.saturating_sub(granted_at) >= max_ahead || from_before(granted_at))
    }

    /// Notes that a bulk request that was not overdue was granted.
    pub fn granted(&self, now: Nanos) {
        self.granted_at.store(now, Ordering::Relaxed);
    }

    /// Notes that an overdue request was granted words for which the clock takes `span`.
    pub fn granted_overdue(&self, now: Nanos, span: Nanos) {
        self.overdue_at.store(now + OVERDUE_PART * span.min(LONGEST_SPAN), Ordering::Relaxed);
    }
}
