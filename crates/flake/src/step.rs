//! Decides which words a request gets. The decision is a pure function of the word that was issued last, the time, and
//! the limits.

use core::error::Error;
use core::fmt;
use core::time::Duration;

use crate::{Epoch, IdFormat, Layout, Nanos, Tick};

/// A caller's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// A request for up to this many words, at least one. The words can continue into the next tick. One grant contains
    /// at most [`Limits::largest_grant`] words. The caller makes further requests for the rest.
    UpTo(u64),
    /// A request for exactly this many words, all in one tick. A number below one counts as one, and a number above
    /// [`Limits::largest_grant`] counts as [`Limits::largest_grant`].
    InOneTick(u64),
}

impl Request {
    /// Returns true if the request is for one word.
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
    /// The state is not loaded. No word has been issued since the server started or since the mark was set.
    NotLoaded,
    /// The words are at or above the ceiling. The ceiling must first be raised to at least this word.
    NotReserved(u64),
    /// The lead has reached its limit. The caller can retry after this duration.
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

/// The limits that cannot change while the server is running.
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
    /// True if a new tick begins at a random sequence number instead of 0.
    pub random_start: bool,
    /// True if the request is for more than one word and has been throttled for a long time. Such a request may run as
    /// far ahead as a request for one word.
    pub overdue: bool,
    /// How long the request has been throttled, in nanoseconds, or 0 on the first attempt. The longer a request has
    /// waited, the less it rests, so that it is granted before requests that began later.
    pub waited: Nanos,
}

impl Pace {
    /// Returns how far ahead of the clock a bulk request may run. This is half of the limit for a request for one word,
    /// so that a request for one word is granted at once, no matter how many bulk requests there are. (An overdue
    /// request may run as far ahead as a request for one word.)
    const fn bulk_ahead(&self) -> Nanos {
        self.max_ahead / 2
    }

    /// A throttled caller sleeps until the lead is below its limit by at least `max_ahead` divided by this number. The
    /// caller does not wake up at every tick, because waking up takes some microseconds, and drawing all IDs of one
    /// tick does not take much longer.
    const REST: u64 = 8;

    /// The number of steps in a rest. For each tick that a request has waited, or for each `max_ahead` if this is
    /// longer than a tick, its rest is one step shorter. With the default value of `snowflake_pg.max_ahead`, a step is
    /// half a millisecond, which is half of the resolution of a session's sleep. If there were fewer steps, many
    /// waiting requests would soon have the same rest.
    const STEPS: u64 = 24;

    /// Returns how long a throttled caller rests after the lead has fallen to its limit. A new request rests for one to
    /// three times `max_ahead` divided by [`Pace::REST`]. A request that has waited rests for less time than any new
    /// request. Otherwise, in a tick with few words, the caller that wakes up first could take all words with
    /// successive requests, and the other callers would get words only by chance. The durations are scattered because
    /// callers that wake up at the same time contend for one cache line.
    const fn rest(&self, now: Nanos, tick: Tick) -> Nanos {
        let rest = self.max_ahead / Pace::REST;
        if self.waited == 0 {
            return rest + scatter(now) % (2 * rest + 1);
        }
        let step = rest / Pace::STEPS;
        // The scatter is at most one step.
        rest.saturating_sub((2 + self.waited / self.unit(tick)).saturating_mul(step)) + scatter(now) % (step + 1)
    }

    /// Returns the duration of one turn: a tick or `max_ahead`, whichever is longer.
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
    const fn due(&self, word: u64) -> Nanos {
        // This cannot overflow: the product is less than the longest tick, 10^9 ns, times 2^31 words.
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
    const fn begins(&self, tick: u64) -> Nanos {
        self.epoch.saturating_add(tick.saturating_mul(self.tick.nanos()))
    }
}

/// Decides what a request gets. `last` is the word that was issued last, `now` is the clock's time, and words from
/// `ceiling` on may not be issued yet. The granted words belong to the caller only if `last` has not changed in the
/// meantime. `last` must be a word, not [`crate::NOT_LOADED`].
// Always inlined: most callers request one word, and the compiler then removes most of the code.
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
                // A new tick has begun. The offset is less than the number of words in a tick, so the word is not ahead
                // of the clock.
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
                // The caller of an overdue request must wake up before the callers that take all the words.
                let rest = if pace.overdue { 0 } else { pace.rest(now, limits.tick) };
                return Err(Obstacle::Throttled(Duration::from_nanos(lead - pace.max_ahead + rest)));
            }
        }
    } else if clock <= last {
        // The lead is measured to the time at which the word is due, not to the beginning of the word's tick.
        // Otherwise, bulk requests would take all words of a long tick at once, and requests for one word would get
        // none.
        let lead = limits.due(first).saturating_sub(now);
        if lead > pace.bulk_ahead() {
            return Err(Obstacle::Throttled(Duration::from_nanos(
                lead - pace.bulk_ahead() + pace.rest(now, limits.tick),
            )));
        }
    }
    Ok(Run { first, count })
}

/// Spreads nearby times over all 64 bits. This is the finalizer of SplitMix64 (Steele, Lea, Flood 2014). It distributes
/// the low bits of an ID evenly, and is cheap enough for the hot path. The result is not a secret.
const fn scatter(now: Nanos) -> u64 {
    let mut x = now;
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
