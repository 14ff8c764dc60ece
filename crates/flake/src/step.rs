//! Decides which words a request gets. The decision is a pure function of the last word issued, the time, and the limits.

use core::error::Error;
use core::fmt;
use core::time::Duration;

use crate::{Epoch, IdFormat, Layout, Nanos, Tick};

/// A caller's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Up to this many words, at least one. The words can continue in the next tick. A grant is at most [`Limits::largest_grant`]
    /// words, so the caller makes another request for the rest.
    UpTo(u64),
    /// Exactly this many words, all in one tick. A number below one counts as one, and a number above [`Limits::largest_grant`]
    /// counts as [`Limits::largest_grant`].
    InOneTick(u64),
}

impl Request {
    /// Returns true for a request for one word.
    pub const fn is_single(self) -> bool {
        matches!(self, Request::UpTo(0 | 1) | Request::InOneTick(0 | 1))
    }
}

/// Consecutive words that were granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The first word.
    pub first: u64,
    /// The number of words, at least one.
    pub count: u64,
}

impl Run {
    /// Returns the last word.
    #[inline]
    pub const fn last(&self) -> u64 {
        self.first + (self.count - 1)
    }
}

/// The reason why a request cannot be granted now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The state is not loaded: no word has been issued since the server started, or since the mark was set.
    NotLoaded,
    /// The words are at or above the ceiling. The ceiling must first rise to at least this word.
    NotReserved(u64),
    /// The lead is at its limit. The caller can retry after this duration.
    Throttled(Duration),
    /// The timestamp field is exhausted.
    Exhausted,
    /// The clock is before the epoch.
    BeforeEpoch,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Obstacle::NotLoaded => f.write_str("the state is not loaded"),
            Obstacle::NotReserved(word) => write!(f, "word {word} is not reserved"),
            Obstacle::Throttled(wait) => write!(f, "the lead is at its limit for another {wait:?}"),
            Obstacle::Exhausted => f.write_str("the timestamps of the layout are exhausted"),
            Obstacle::BeforeEpoch => f.write_str("the clock is before the epoch"),
        }
    }
}

impl Error for Obstacle {}

/// The limits that cannot change while the server runs.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    sequence_bits: u32,
    last_word: u64,
    tick: Tick,
    epoch: Nanos,
}

/// The limits that can be changed by reloading the configuration.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    /// How far issued words may be ahead of the clock, in nanoseconds.
    pub max_ahead: Nanos,
    /// True if each new tick begins at a random sequence number instead of 0.
    pub random_start: bool,
    /// True if the request is for more than one word and has been throttled for a long time. The request may then run ahead as
    /// far as a request for a single word.
    pub overdue: bool,
    /// How long the request has been throttled, in nanoseconds, or 0 if this is its first attempt. A request that has waited longer
    /// rests less, so that it comes before the requests that began later.
    pub waited: Nanos,
}

impl Pace {
    /// Returns how far requests for more than one word may run ahead of the clock. This is half of the limit for single words, so
    /// that a request for a single word is granted at once, however many bulk requests there are. (An overdue request may run
    /// ahead as far as a request for a single word.)
    const fn bulk_ahead(&self) -> Nanos {
        self.max_ahead / 2
    }

    /// A throttled caller sleeps until the lead is below its limit by at least `max_ahead` divided by this number. The caller
    /// does not wake up at the next tick, because waking up takes some microseconds, and drawing the IDs of one tick takes little
    /// longer.
    const REST: u64 = 8;

    /// The rest is divided into this many steps. For each tick that a request has waited, or for each `max_ahead` if
    /// this is longer, its rest is one step shorter. With the default of `snowflake_pg.max_ahead`, a step is half a
    /// millisecond, which is half of the resolution of the sleeps of a session. With fewer steps, the requests of many
    /// callers would soon all have waited for longer than the steps can distinguish.
    const STEPS: u64 = 24;

    /// Returns how long a throttled caller rests once the lead is at its limit. For a new request, this is one to three times
    /// `max_ahead` divided by [`Pace::REST`]. A request that has waited rests less than all new requests. Otherwise, if a tick has few
    /// words, the caller that wakes up first could take all of them with one request after the other, and only chance would end the wait
    /// of the others. Durations are scattered, because callers that wake up at the same time contend for one cache line.
    const fn rest(&self, now: Nanos, tick: Tick) -> Nanos {
        let rest = self.max_ahead / Pace::REST;
        if self.waited == 0 {
            return rest + scatter(now) % (2 * rest + 1);
        }
        let step = rest / Pace::STEPS;
        // The scatter is less than a step.
        rest.saturating_sub((2 + self.waited / self.unit(tick)).saturating_mul(step)) + scatter(now) % (step + 1)
    }

    /// Returns the time of one turn: a tick, or `max_ahead` if it is longer.
    pub(crate) const fn unit(&self, tick: Tick) -> Nanos {
        if tick.nanos() > self.max_ahead { tick.nanos() } else { self.max_ahead }
    }
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

    /// Returns the largest number of words that one request is granted: the words of one tick or the words of half of
    /// `max_ahead`, whichever is less. As a result, a grant moves the last word no further ahead than a request for a
    /// single word may move it.
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

    /// Returns the time that this many words span in the layout.
    pub const fn span(&self, count: u64) -> Nanos {
        self.tick.nanos().saturating_mul(count) >> self.sequence_bits
    }

    /// Returns the instant at which a word is due if the words of a tick are spread evenly over the tick.
    const fn due(&self, word: u64) -> Nanos {
        // This does not overflow, because the product is less than the 10^9 ns of the longest tick times 2^31 words.
        let part = ((word & (self.capacity() - 1)) * self.tick.nanos()) >> self.sequence_bits;
        self.time(word).saturating_add(part)
    }

    /// Returns the first word of `tick`, or the word after the layout's last word if the layout ends before `tick`.
    const fn word(&self, tick: u64) -> u64 {
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

    /// Returns the time at which the tick of a word begins. The result saturates far beyond the time of any clock.
    pub const fn time(&self, word: u64) -> Nanos {
        self.begins(word >> self.sequence_bits)
    }

    /// Returns the first word of the tick at `now`, or the word after the layout's last word if the layout has no word for this
    /// time. Returns `None` if `now` is before the epoch.
    pub const fn word_at(&self, now: Nanos) -> Option<u64> {
        if now < self.epoch { None } else { Some(self.word(self.tick.whole(now - self.epoch))) }
    }

    /// Returns the time at which `tick` begins. The result saturates far beyond the time of any clock.
    const fn begins(&self, tick: u64) -> Nanos {
        self.epoch.saturating_add(tick.saturating_mul(self.tick.nanos()))
    }
}

/// Decides what a request gets if `last` was the last word issued, the clock shows `now`, and words from `ceiling` on may not be
/// issued yet. The granted words belong to the caller only if `last` has not changed in the meantime. `last` must be a word, not
/// [`crate::NOT_LOADED`].
// This function is always inlined. Most callers request one word, and the compiler then removes most of the code.
#[inline(always)]
pub fn step(
    last: u64,
    now: Nanos,
    ceiling: u64,
    limits: &Limits,
    pace: Pace,
    request: Request,
) -> Result<Run, Obstacle> {
    if now < limits.epoch {
        return Err(Obstacle::BeforeEpoch);
    }
    let tick = limits.tick.whole(now - limits.epoch);
    let clock = limits.word(tick);
    let capacity = limits.capacity();
    let single = request.is_single();
    let most = if single { 1 } else { limits.largest_grant(pace) };
    let mut first = last + 1;
    let count = match request {
        Request::UpTo(count) => {
            if clock > last {
                // A new tick has begun. The offset is less than the number of words in the tick, so the word is not ahead of the
                // clock.
                let offset = if pace.random_start { scatter(now) & (capacity - 1) } else { 0 };
                first = clock + offset;
            }
            count.clamp(1, most)
        }
        Request::InOneTick(count) => {
            let count = count.clamp(1, most);
            first = first.max(clock);
            if (first & (capacity - 1)) + count > capacity {
                first = (first | (capacity - 1)) + 1;
            }
            count
        }
    };
    if first > limits.last_word {
        return Err(Obstacle::Exhausted);
    }
    let count = match request {
        Request::UpTo(_) => {
            if first >= ceiling {
                return Err(Obstacle::NotReserved(first + 1));
            }
            count.min(ceiling - first).min(limits.last_word - first + 1)
        }
        Request::InOneTick(_) => {
            if count > ceiling.saturating_sub(first) {
                return Err(Obstacle::NotReserved(first + count));
            }
            count
        }
    };
    if single || pace.overdue {
        let first_tick = first >> limits.sequence_bits;
        if first_tick > tick {
            let lead = limits.begins(first_tick) - now;
            if lead > pace.max_ahead {
                // The caller of an overdue request wakes up before the callers that take all words.
                let rest = if pace.overdue { 0 } else { pace.rest(now, limits.tick) };
                return Err(Obstacle::Throttled(Duration::from_nanos(lead - pace.max_ahead + rest)));
            }
        }
    } else if clock <= last {
        // The lead is measured to the time at which the word is due, not to the beginning of the word's tick. Otherwise, bulk
        // requests would take all words of a long tick at once and leave none for requests for a single word.
        let lead = limits.due(first).saturating_sub(now);
        if lead > pace.bulk_ahead() {
            return Err(Obstacle::Throttled(Duration::from_nanos(
                lead - pace.bulk_ahead() + pace.rest(now, limits.tick),
            )));
        }
    }
    Ok(Run { first, count })
}

/// Spreads nearby times over all 64 bits with the finalizer of SplitMix64 (Steele, Lea, Flood 2014). The finalizer distributes
/// the low bits of an ID evenly, and is cheap enough for the hot path. The result is not a secret.
const fn scatter(now: Nanos) -> u64 {
    let mut x = now;
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
