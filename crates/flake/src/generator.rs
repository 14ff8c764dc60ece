//! The decision which words a request gets: a pure function of the last word issued, the time, and the limits.

use core::time::Duration;

use crate::{Epoch, Layout, Nanos, Scheme, Tick};

/// What a caller asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Up to this many words, at least one; they may run over the end of a tick. What is granted is at most one tick's
    /// capacity, so that one request cannot push the lead further than that: ask again for the rest.
    UpTo(u64),
    /// Exactly this many words, from one to the sequence capacity (a number outside counts as the nearest inside), all
    /// in one tick.
    InOneTick(u64),
}

/// Consecutive words, granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The first word.
    pub first: u64,
    /// How many, at least one.
    pub count: u64,
}

impl Run {
    /// The last word.
    #[inline]
    pub const fn last(&self) -> u64 {
        self.first + (self.count - 1)
    }
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// These words are the caller's if `last` is still what it was.
    Issue(Run),
    /// The words lie at or above the ceiling, which must first rise to this word or above.
    Extend(u64),
    /// The lead is at its limit: ask again after this time.
    Wait(Duration),
    /// The timestamp field is used up.
    Exhausted,
    /// The clock is before the epoch.
    BeforeEpoch,
}

/// What is fixed while the server runs.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    sequence_bits: u32,
    last_word: u64,
    tick: Tick,
    epoch: Nanos,
}

/// What a reload of the configuration can change.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// How far the issued time may run ahead of the clock, in nanoseconds.
    pub max_ahead: Nanos,
    /// Begin each new tick at a random sequence number instead of 0.
    pub random_start: bool,
}

impl Pace {
    /// A throttled caller sleeps until the lead is at least this part of `max_ahead` below its limit, not just until the
    /// next tick: waking costs some microseconds, and one tick's IDs are drawn in little more.
    const REST: u64 = 8;

    /// How long a throttled caller rests once the lead is at its limit: one to three times [`Pace::REST`]. Scattered, for
    /// callers that wake together contend for one cache line.
    const fn rest(&self, now: Nanos) -> Nanos {
        let rest = self.max_ahead / Pace::REST;
        rest + scatter(now) % (2 * rest + 1)
    }
}

impl Limits {
    /// The limits of a scheme.
    pub const fn of(scheme: &Scheme) -> Limits {
        let layout: &Layout = &scheme.layout;
        let epoch: Epoch = scheme.epoch;
        Limits {
            sequence_bits: layout.sequence_bits(),
            last_word: layout.last_word(),
            tick: layout.tick(),
            epoch: epoch.nanos(),
        }
    }

    /// Words of one tick.
    pub const fn capacity(&self) -> u64 {
        1 << self.sequence_bits
    }

    /// The first word of `tick`, or the word after the last one when the tick is past the layout's end.
    const fn word(&self, tick: u64) -> u64 {
        let last_tick = self.last_word >> self.sequence_bits;
        if tick > last_tick { self.last_word + 1 } else { tick << self.sequence_bits }
    }

    /// The last word of the layout.
    pub const fn last_word(&self) -> u64 {
        self.last_word
    }

    /// The unit of the timestamp.
    pub const fn tick(&self) -> Tick {
        self.tick
    }

    /// When the tick of a word begins; saturates far beyond any clock.
    pub const fn time(&self, word: u64) -> Nanos {
        self.begins(word >> self.sequence_bits)
    }

    /// The first word of the tick at `now`, or the word after the last one when the layout has none for that time; `None`
    /// before the epoch.
    pub const fn word_at(&self, now: Nanos) -> Option<u64> {
        if now < self.epoch { None } else { Some(self.word(self.tick.whole(now - self.epoch))) }
    }

    /// When `tick` begins; saturates far beyond any clock.
    const fn begins(&self, tick: u64) -> Nanos {
        self.epoch.saturating_add(tick.saturating_mul(self.tick.nanos()))
    }
}

/// Decides what a request gets when `last` was the last word issued, the clock shows `now`, and words from `ceiling` on
/// may not be issued yet. `last` is a word, not [`crate::NOT_LOADED`].
// Always inlined: most callers ask for one word, and for those little is left of it.
#[inline(always)]
pub fn step(last: u64, now: Nanos, ceiling: u64, limits: &Limits, pace: Pace, request: Request) -> Step {
    if now < limits.epoch {
        return Step::BeforeEpoch;
    }
    let tick = limits.tick.whole(now - limits.epoch);
    let clock = limits.word(tick);
    let capacity = limits.capacity();
    let mut first = last + 1;
    let count = match request {
        Request::UpTo(count) => {
            if clock > last {
                // A new tick. The offset stays inside it, so it never reaches past what the clock allows.
                let offset = if pace.random_start { scatter(now) & (capacity - 1) } else { 0 };
                first = clock + offset;
            }
            count.clamp(1, capacity)
        }
        Request::InOneTick(count) => {
            let count = count.clamp(1, capacity);
            first = first.max(clock);
            if (first & (capacity - 1)) + count > capacity {
                first = (first | (capacity - 1)) + 1;
            }
            count
        }
    };
    if first > limits.last_word {
        return Step::Exhausted;
    }
    let count = match request {
        Request::UpTo(_) => {
            if first >= ceiling {
                return Step::Extend(first + 1);
            }
            count.min(ceiling - first).min(limits.last_word - first + 1)
        }
        Request::InOneTick(_) => {
            if count > ceiling.saturating_sub(first) {
                return Step::Extend(first + count);
            }
            count
        }
    };
    let first_tick = first >> limits.sequence_bits;
    if first_tick > tick {
        let lead = limits.begins(first_tick) - now;
        if lead > pace.max_ahead {
            return Step::Wait(Duration::from_nanos(lead - pace.max_ahead + pace.rest(now)));
        }
    }
    Step::Issue(Run { first, count })
}

/// Spreads nearby times over all 64 bits: the finalizer of SplitMix64 (Steele, Lea, Flood 2014), enough to level the low
/// bits of an ID and cheap enough for the hot path. Not a secret.
const fn scatter(now: Nanos) -> u64 {
    let mut x = now;
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
