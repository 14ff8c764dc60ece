//! Fairness between bulk requests, which are requests for more than one word, and requests for one word. Neither kind
//! of request can keep the other waiting forever. The modules `throttle` and `turn` contain the rules of fairness
//! between requests of the same kind.
//!
//! Bulk requests leave half of the run-ahead to requests for one word. If requests for one word use all of the
//! run-ahead, a bulk request becomes *overdue*, and is then granted like a request for one word.

use crate::Nanos;
use crate::sync::{AtomicU64, Ordering};

/// Overdue requests together get at most 1 / `OVERDUE_PART` of the layout's words.
const OVERDUE_PART: Nanos = 4;

/// The longest time span that the words granted to one request can cover. It is half of the longest run-ahead, which is
/// 10 s.
const LONGEST_SPAN: Nanos = 5_000_000_000;

/// If a stored time is further ahead of the monotonic clock than this, the monotonic clock has gone backward since the
/// time was stored.
const LONGEST_PAUSE: Nanos = 2 * OVERDUE_PART * LONGEST_SPAN;

/// The monotonic times at which bulk requests were granted.
#[derive(Default)]
pub struct Bulk {
    /// The time at which the next overdue request can be granted.
    overdue_at: AtomicU64,
    /// The time at which a bulk request was last granted without being overdue.
    granted_at: AtomicU64,
}

impl Bulk {
    /// Returns true if a bulk request that has been throttled for `max_ahead` is overdue, so that it may run as far
    /// ahead as a request for one word. It is overdue if no other bulk request was granted in the meantime, which means
    /// that requests for one word keep the bulk requests waiting. All overdue requests together get only a part of the
    /// layout's words, so that the rest remains for requests for one word.
    pub fn takes_overdue(&self, now: Nanos, max_ahead: Nanos) -> bool {
        let overdue_at = self.overdue_at.load(Ordering::Relaxed);
        let granted_at = self.granted_at.load(Ordering::Relaxed);
        let from_before = |time| time > now + LONGEST_PAUSE;
        (overdue_at <= now || from_before(overdue_at))
            && (now.saturating_sub(granted_at) >= max_ahead || from_before(granted_at))
    }

    /// Records that a bulk request was granted without being overdue.
    pub fn granted(&self, now: Nanos) {
        self.granted_at.store(now, Ordering::Relaxed);
    }

    /// Records that an overdue request was granted words that span the time `span`.
    pub fn granted_overdue(&self, now: Nanos, span: Nanos) {
        self.overdue_at.store(now + OVERDUE_PART * span.min(LONGEST_SPAN), Ordering::Relaxed);
    }
}
