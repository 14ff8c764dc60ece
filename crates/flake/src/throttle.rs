//! How far ahead of the clock a request may run, and how long it rests if it is throttled. `next_word.rs` compares the
//! lead of a request with this limit. A caller that has waited for a longer time rests for a shorter time, so it retries
//! sooner. The modules `turn` and `bulk` contain the other rules of fairness.

use crate::scatter::scatter;
use crate::{Nanos, Tick};

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
    pub(crate) const fn bulk_ahead(&self) -> Nanos {
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
    pub(crate) const fn rest(&self, now: Nanos, tick: Tick) -> Nanos {
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
