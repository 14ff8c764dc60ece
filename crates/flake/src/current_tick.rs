//! The tick of the word that a caller drew last. Most words are in the same tick as the previous one, and the caller then gets
//! the next word with [`State::next`](crate::State::next), without the decisions of [`step`](crate::step).

use core::sync::atomic::{AtomicU64, Ordering};

use crate::{Limits, Nanos};

/// The tick of the word that a caller drew last: its words, and the times at which a request for one word gets the next one of them.
///
/// Only one thread uses a value of this type. The numbers are atomic because Rust does not allow other mutable statics
/// in safe code. With two threads, a draw could combine the times of one tick with the words of another one.
#[derive(Debug)]
pub struct CurrentTick {
    /// How far ahead of the clock a request may run, if the other values apply to it.
    ahead: AtomicU64,
    /// The first time, which is before the tick, because words are drawn ahead of the clock.
    from: AtomicU64,
    /// The time from the first time to the end of the tick.
    length: AtomicU64,
    first: AtomicU64,
    /// The number of words after the first one.
    others: AtomicU64,
}

impl CurrentTick {
    /// Returns the value for a caller that has not drawn any words yet.
    #[expect(clippy::new_without_default, reason = "a const function is needed")]
    pub const fn new() -> CurrentTick {
        CurrentTick {
            ahead: AtomicU64::new(0),
            from: AtomicU64::new(0),
            length: AtomicU64::new(0),
            first: AtomicU64::new(0),
            others: AtomicU64::new(0),
        }
    }

    /// Returns the word after `last` if both words are in this tick, the tick has not ended at `now`, and the word is at most
    /// `ahead` ahead of the clock. A request for one word then gets this word, because no new tick has begun.
    #[inline(always)]
    pub(crate) fn next(&self, last: u64, now: Nanos, ahead: Nanos) -> Option<u64> {
        let get = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let in_time = now.wrapping_sub(get(&self.from)) < get(&self.length) && ahead == get(&self.ahead);
        (in_time && last.wrapping_sub(get(&self.first)) < get(&self.others)).then(|| last + 1)
    }

    /// Remembers the tick of `word`, which was drawn, for requests that may run `ahead` ahead of the clock. The limits are always
    /// the same.
    pub fn remember(&self, limits: &Limits, word: u64, ahead: Nanos) {
        let set = |number: &AtomicU64, value| number.store(value, Ordering::Relaxed);
        let first = word & !(limits.capacity() - 1);
        let begins = limits.time(first);
        // No word is drawn before the epoch.
        let from = begins.saturating_sub(ahead).max(limits.epoch);
        set(&self.ahead, ahead);
        set(&self.from, from);
        set(&self.length, begins.saturating_add(limits.tick().nanos()) - from);
        set(&self.first, first);
        set(&self.others, (limits.capacity() - 1).min(limits.last_word() - first));
    }
}
