//! The tick of a caller's previous draw. Most draws are in the same tick as the previous one, and the caller then gets
//! the next word with [`State::next`](crate::State::next), without the decisions of [`step`](crate::step).

use core::sync::atomic::{AtomicU64, Ordering};

use crate::{Limits, Nanos};

/// The tick of a caller's previous draw: its time and its words.
///
/// Only one thread uses a value of this type. The numbers are atomic because Rust does not allow other mutable statics
/// in safe code. With two threads, a draw could combine the time of one tick with the words of another one.
#[derive(Debug)]
pub struct CurrentTick {
    begins: AtomicU64,
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
            begins: AtomicU64::new(0),
            length: AtomicU64::new(0),
            first: AtomicU64::new(0),
            others: AtomicU64::new(0),
        }
    }

    /// Returns the word after `last` if `now` and both words are in this tick. A request for one word then gets this
    /// word, because no new tick has begun and the word is not ahead of the clock.
    #[inline(always)]
    pub(crate) fn next(&self, last: u64, now: Nanos) -> Option<u64> {
        let get = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let in_time = now.wrapping_sub(get(&self.begins)) < get(&self.length);
        (in_time && last.wrapping_sub(get(&self.first)) < get(&self.others)).then(|| last + 1)
    }

    /// Remembers the tick at `now`. The limits are always the same.
    pub fn remember(&self, limits: &Limits, now: Nanos) {
        let set = |number: &AtomicU64, value| number.store(value, Ordering::Relaxed);
        let begins = self.begins.load(Ordering::Relaxed);
        if now.wrapping_sub(begins) < self.length.load(Ordering::Relaxed) {
            return;
        }
        let Some(first) = limits.word_at(now).filter(|first| *first <= limits.last_word()) else {
            return;
        };
        set(&self.begins, limits.time(first));
        set(&self.length, limits.tick().nanos());
        set(&self.first, first);
        set(&self.others, (limits.capacity() - 1).min(limits.last_word() - first));
    }
}
