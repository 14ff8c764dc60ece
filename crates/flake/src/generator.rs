//! Decides which words a request gets. The decision is a pure function of the last word issued, the time, and the limits.

use core::time::Duration;

use crate::{Epoch, IdFormat, Layout, Nanos, Tick};

/// The request of a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Up to this many words, at least one. They can continue in the next tick. A grant is at most [`Limits::largest_grant`]; the
    /// caller requests the rest again.
    UpTo(u64),
    /// Exactly this many words, all in one tick. A number outside of the range from one to [`Limits::largest_grant`] counts as the
    /// nearest number in it.
    InOneTick(u64),
}

impl Request {
    /// True for a request for one word.
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
    /// The last word.
    #[inline]
    pub const fn last(&self) -> u64 {
        self.first + (self.count - 1)
    }
}

/// What keeps a request from being granted now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The state is not loaded: nothing was issued since the server started, or since the mark was set.
    NotLoaded,
    /// The words lie at or above the ceiling, which must first rise to this word or above.
    NotReserved(u64),
    /// The lead is at its limit. The caller can try again after this time.
    Throttled(Duration),
    /// The timestamp field is used up.
    Exhausted,
    /// The clock is before the epoch.
    BeforeEpoch,
}

/// The limits that cannot change while the server runs.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    sequence_bits: u32,
    last_word: u64,
    tick: Tick,
    epoch: Nanos,
}

/// The limits that a reload of the configuration can change.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// How far issued words may be ahead of the clock, in nanoseconds.
    pub max_ahead: Nanos,
    /// True if each new tick begins at a random sequence number instead of 0.
    pub random_start: bool,
    /// True for a request for more than one word that has been throttled for long: it may run ahead as far as single words.
    pub overdue: bool,
}

impl Pace {
    /// How far requests for more than one word may run ahead of the clock. Half of what single words may, so that a single
    /// word is granted at once beside any number of them. (One that is overdue may run ahead as far as single words.)
    const fn bulk_ahead(&self) -> Nanos {
        self.max_ahead / 2
    }

    /// A throttled caller sleeps until the lead is at least this part of `max_ahead` below its limit, not just until the
    /// next tick: waking costs some microseconds, and one tick's IDs are drawn in little more.
    const REST: u64 = 8;

    /// How long a throttled caller rests once the lead is at its limit: one to three times [`Pace::REST`]. It is scattered because
    /// callers that wake together contend for one cache line.
    const fn rest(&self, now: Nanos) -> Nanos {
        let rest = self.max_ahead / Pace::REST;
        rest + scatter(now) % (2 * rest + 1)
    }
}

impl Limits {
    /// The limits of a format.
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

    /// Words of one tick.
    pub const fn capacity(&self) -> u64 {
        1 << self.sequence_bits
    }

    /// The largest number of words that one request is granted: the words of one tick or of half of `max_ahead`, whichever is less.
    /// Therefore a grant moves the last word no further ahead than single words may be.
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

    /// The time that the layout has for this many words.
    pub const fn span(&self, count: u64) -> Nanos {
        self.tick.nanos().saturating_mul(count) >> self.sequence_bits
    }

    /// The instant at which a word is due if the words of a tick are spread evenly over the tick.
    const fn due(&self, word: u64) -> Nanos {
        // This does not overflow: it is less than a tick of 10^9 ns times 2^31 words.
        let part = ((word & (self.capacity() - 1)) * self.tick.nanos()) >> self.sequence_bits;
        self.time(word).saturating_add(part)
    }

    /// The first word of `tick`, or the word after the last one if the tick is past the end of the layout.
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

    /// The first word of the tick at `now`, or the word after the last one if the layout has no word for that time. `None` before
    /// the epoch.
    pub const fn word_at(&self, now: Nanos) -> Option<u64> {
        if now < self.epoch { None } else { Some(self.word(self.tick.whole(now - self.epoch))) }
    }

    /// When `tick` begins; saturates far beyond any clock.
    const fn begins(&self, tick: u64) -> Nanos {
        self.epoch.saturating_add(tick.saturating_mul(self.tick.nanos()))
    }
}

/// Decides what a request gets if `last` was the last word issued, the clock shows `now`, and words from `ceiling` on may not be
/// issued yet. The words belong to the caller if `last` has not changed. `last` is a word, not [`crate::NOT_LOADED`].
// Always inlined, because most callers request one word, and little of the code is left for them.
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
                // A new tick. The offset is less than the tick, so the word is not ahead of the clock.
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
                // An overdue request wakes before the callers that take all words.
                let rest = if pace.overdue { 0 } else { pace.rest(now) };
                return Err(Obstacle::Throttled(Duration::from_nanos(lead - pace.max_ahead + rest)));
            }
        }
    } else if clock <= last {
        // The time at which the word is due counts, not the beginning of its tick. Otherwise bulk requests would take all words of
        // a long tick at once, and leave none for requests for one word.
        let lead = limits.due(first).saturating_sub(now);
        if lead > pace.bulk_ahead() {
            return Err(Obstacle::Throttled(Duration::from_nanos(lead - pace.bulk_ahead() + pace.rest(now))));
        }
    }
    Ok(Run { first, count })
}

/// Spreads nearby times over all 64 bits: the finalizer of SplitMix64 (Steele, Lea, Flood 2014), which levels the low bits of an ID
/// and is cheap enough for the hot path. The result is not a secret.
const fn scatter(now: Nanos) -> u64 {
    let mut x = now;
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
