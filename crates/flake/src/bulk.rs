//! Fairness between bulk requests, which ask for more than one word, and requests for a single word: neither kind of request can
//! keep the other waiting forever.
//!
//! Bulk requests leave half of the run-ahead to single words. If requests for single words take all of the run-ahead, a bulk
//! request becomes *overdue* and is then granted like a request for a single word.

use crate::Nanos;
use crate::sync::{AtomicU64, Ordering};

/// Overdue requests together get one in this many of the layout's words.
const OVERDUE_PART: Nanos = 4;

/// The longest time that the words of one grant span: half of the longest run-ahead, which is 10 s.
const LONGEST_SPAN: Nanos = 5_000_000_000;

/// If a noted time is further ahead of the monotonic clock than this, the monotonic clock has gone back since the time was noted.
const LONGEST_PAUSE: Nanos = 2 * OVERDUE_PART * LONGEST_SPAN;

/// The times at which bulk requests were granted, by the monotonic clock.
#[derive(Default)]
pub struct Bulk {
    /// The time from which the next overdue request can be granted.
    overdue_at: AtomicU64,
    /// The time at which a bulk request that was not overdue was last granted.
    granted_at: AtomicU64,
}

impl Bulk {
    /// Returns true if a bulk request that has been throttled for `max_ahead` can run ahead as far as a request for a single
    /// word. This is the case if no other bulk request was granted in the meantime, which means that requests for single words
    /// keep the bulk requests waiting. Overdue requests together get only a fraction of the layout's words, so that the rest is
    /// left for single words.
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

    /// Notes that an overdue request was granted words that span the time `span`.
    pub fn granted_overdue(&self, now: Nanos, span: Nanos) {
        self.overdue_at.store(now + OVERDUE_PART * span.min(LONGEST_SPAN), Ordering::Relaxed);
    }
}
