//! Takes turns when callers request more words than the layout has: after a caller has waited for a word, it leaves the
//! next words to other waiting callers. The modules `throttle` and `bulk` contain the other rules of fairness.
//!
//! If a tick is at least as long as the run-ahead, all words of the tick become available at the same time. The caller
//! that wakes up first could then take all of them, with successive requests, before the next caller is awake. In this
//! case, only the order in which sleeps end decides which callers get words. This order can be the same in every tick,
//! because every sleep ends one tick after the previous one.

use crate::{Limits, Nanos, Pace};

/// What a caller remembers between requests for one word. Each caller has its own value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// The monotonic time at which a throttled request of this caller last slept, or 0 if the caller leaves nothing to
    /// other callers.
    slept: Nanos,
}

impl Turn {
    /// The turn of a caller that leaves nothing to other callers.
    pub const FREE: Turn = Turn { slept: 0 };

    /// Returns how far ahead of the clock a new request of this caller may run. A request that has already waited may
    /// run ahead by `max_ahead`. It is therefore granted before the new requests of callers that have waited and then
    /// got a word.
    ///
    /// In a layout whose tick is shorter than `max_ahead`, the result is always `max_ahead`, because waiting callers
    /// get another chance in each tick.
    pub fn ahead(&self, limits: &Limits, pace: Pace) -> Nanos {
        let tick = limits.tick();
        if self.slept == 0 || tick.nanos() < pace.max_ahead {
            return pace.max_ahead;
        }
        // A request that has waited pauses for less than an eighth of `max_ahead`. The remaining time is for callers
        // that wake up late.
        pace.max_ahead / 2
    }

    /// Records that a throttled request of this caller has slept until `now`.
    pub fn slept(&mut self, now: Nanos) {
        self.slept = now.max(1);
    }

    /// Returns true if a new request that is throttled can be retried at once. This is the case if the caller has left
    /// words to other callers, and if more time than a tick or `max_ahead`, whichever is longer, has passed since its
    /// last wait.
    pub fn ends(&mut self, now: Nanos, limits: &Limits, pace: Pace) -> bool {
        // The monotonic clock may have gone backward in the meantime.
        let ends = self.slept != 0 && now.abs_diff(self.slept) > pace.unit(limits.tick());
        if ends {
            *self = Turn::FREE;
        }
        ends
    }
}
