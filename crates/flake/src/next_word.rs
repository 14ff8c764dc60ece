//! Decides which words a request gets. The decision is a pure function of the word that was issued last, the time, and
//! the limits.

use core::error::Error;
use core::fmt;
use core::time::Duration;

use crate::scatter::scatter;
use crate::{Limits, Nanos, Pace};

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
