//! Turns at the limit: a caller that has waited for a word leaves the next words to the other callers that wait.
//!
//! If a tick is as long as the run-ahead or longer, all words of a tick become available at one moment. The caller that wakes up first
//! could take all of them, with one request after the other, before the next caller is awake. Then only the order in which sleeps end
//! decides who gets words, and this order can be the same in every tick, because all sleeps end a tick after the last ones did.

use crate::{Limits, Nanos, Pace};

/// What one caller remembers between its requests for one word. Every caller has its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// When a throttled request of this caller last slept, by the monotonic clock, or 0 if the caller leaves nothing to others.
    slept: Nanos,
}

impl Turn {
    /// A turn that leaves nothing to others.
    pub const FREE: Turn = Turn { slept: 0 };

    /// Returns how far ahead of the clock a new request of this caller may run. A request that has waited may run ahead by
    /// `max_ahead`, so that it is granted before new requests of callers that have waited and were served.
    ///
    /// In layouts whose tick is shorter than `max_ahead`, this is `max_ahead`, because each tick is another chance.
    pub fn ahead(&self, limits: &Limits, pace: Pace) -> Nanos {
        let tick = limits.tick();
        if self.slept == 0 || tick.nanos() < pace.max_ahead {
            return pace.max_ahead;
        }
        // Requests that have waited rest for less than an eighth of `max_ahead`. The remainder is for callers that wake up late.
        pace.max_ahead / 2
    }

    /// Notes that a throttled request of this caller has slept until `now`.
    pub fn slept(&mut self, now: Nanos) {
        self.slept = now.max(1);
    }

    /// Decides about a new request that is throttled. Returns true if it can be made again at once, because the caller left words to
    /// others, and its last wait was more than a tick, or `max_ahead`, ago.
    pub fn ends(&mut self, now: Nanos, limits: &Limits, pace: Pace) -> bool {
        // The monotonic clock may have gone back meanwhile.
        let ends = self.slept != 0 && now.abs_diff(self.slept) > pace.unit(limits.tick());
        if ends {
            *self = Turn::FREE;
        }
        ends
    }
}
