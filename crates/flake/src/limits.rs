//! What a layout and an epoch allow: how many words there are in a tick, when each word is due, and how many words a request may get.

use crate::{Epoch, IdFormat, Layout, Nanos, Pace, Tick};

/// The limits that cannot change while the server is running.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub(crate) sequence_bits: u32,
    pub(crate) last_word: u64,
    pub(crate) tick: Tick,
    pub(crate) epoch: Nanos,
}

impl Limits {
    /// Returns the limits of a format.
    pub const fn of(format: &IdFormat) -> Limits {
        let layout: &Layout = &format.layout;
        let epoch: Epoch = format.epoch;
        Limits {
            sequence_bits: layout.sequence_bits(),
            last_word: layout.last_word(),
            tick: layout.tick(),
            epoch: epoch.nanos(),
        }
    }

    /// Returns the number of words in one tick.
    pub const fn capacity(&self) -> u64 {
        1 << self.sequence_bits
    }

    /// Returns the largest number of words that are granted to one request: the words of one tick or of half of
    /// `max_ahead`, whichever is less. A grant never moves the last word further ahead than a request for one
    /// word may move it.
    #[inline(always)]
    pub const fn largest_grant(&self, pace: Pace) -> u64 {
        let words = pace.bulk_ahead().saturating_mul(self.capacity()) / self.tick.nanos();
        if words == 0 {
            1
        } else if words < self.capacity() {
            words
        } else {
            self.capacity()
        }
    }

    /// Returns the time span of this many words.
    pub const fn span(&self, count: u64) -> Nanos {
        self.tick.nanos().saturating_mul(count) >> self.sequence_bits
    }

    /// Returns the time at which a word is due, if the words of a tick are spread evenly over the tick.
    pub(crate) const fn due(&self, word: u64) -> Nanos {
        // This cannot overflow: the product is less than the longest tick, 10^9 ns, times 2^31 words.
        let part = ((word & (self.capacity() - 1)) * self.tick.nanos()) >> self.sequence_bits;
        self.time(word).saturating_add(part)
    }

    /// Returns the first word of `tick`, or the word after the layout's last word if the layout ends before `tick`.
    pub(crate) const fn word(&self, tick: u64) -> u64 {
        let last_tick = self.last_word >> self.sequence_bits;
        if tick > last_tick { self.last_word + 1 } else { tick << self.sequence_bits }
    }

    /// Returns the last word of the layout.
    pub const fn last_word(&self) -> u64 {
        self.last_word
    }

    /// Returns the unit of the timestamp.
    pub const fn tick(&self) -> Tick {
        self.tick
    }

    /// Returns the time at which the tick of a word begins. The result saturates at a value that no clock reaches.
    pub const fn time(&self, word: u64) -> Nanos {
        self.begins(word >> self.sequence_bits)
    }

    /// Returns the first word of the tick at `now`, or the word after the layout's last word if `now` is after the
    /// layout's end. Returns `None` if `now` is before the epoch.
    pub const fn word_at(&self, now: Nanos) -> Option<u64> {
        if now < self.epoch { None } else { Some(self.word(self.tick.whole(now - self.epoch))) }
    }

    /// Returns the time at which `tick` begins. The result saturates at a value that no clock reaches.
    pub(crate) const fn begins(&self, tick: u64) -> Nanos {
        self.epoch.saturating_add(tick.saturating_mul(self.tick.nanos()))
    }
}
