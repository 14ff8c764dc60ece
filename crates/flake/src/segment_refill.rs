//! Determines how a server refills the segment of one tag: which request it sends to the registry, and what an answer
//! means.
//!
//! A server repeats these steps:
//!
//! 1. If [`Refill::is_due`] returns true, call [`Refill::request`] and send the request. If there is no answer, repeat
//!    this step. The request then has the same nonce, so that the registry can return the same block.
//! 2. Pass the answer to [`Refill::answer`], and act on the [`Decision`]. The registry must have committed before it
//!    answers.
//!
//! To stop using a tag, close the segment and give back the [`Refill::rests`]. Then use a new `Refill` for the next
//! tag. A server that has lost its `Refill` continues with a new one and does not give back numbers from earlier
//! blocks.

use crate::Nanos;
use crate::fleet::Uuid;
use crate::segment::{Block, Left};
use crate::segment_block_size::next_length;

/// If the registry cannot issue numbers of a tag for which sessions are waiting, the server waits this long before it
/// retries.
const HELD_BACK: Nanos = 2_000_000_000;

/// The shortest and the longest wait for the next window of a tag, in microseconds. The wait is limited because the
/// registry's clock may be ahead.
const WINDOW_WAIT: (i64, i64) = (100_000, 1_200_000_000);

/// The next block is fetched, at the latest, when one tenth (1 / `LAST_PART`) of the current block is left.
const LAST_PART: u64 = 10;

/// When the next block is fetched, the remaining numbers must last for at least this many fetches. A fetch can take
/// several times as long as the previous one.
const FETCHES: u128 = 4;

/// The reason why the registry does not issue a block of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Reason {
    /// The tag does not exist.
    Unknown = 1,
    /// The tag has issued as many numbers as it can issue within a period of some minutes.
    Wait,
    /// The tag has issued its last number.
    Exhausted,
    /// The tag belongs to a period that has not begun.
    NotBegun,
    /// Another session has locked the tag in the registry.
    Locked,
    /// The registry raised an error when it tried to create the tag.
    NotCreated,
    /// The tag contains a character that the encoding of the registry's database does not have.
    Encoding,
}

impl Reason {
    /// Returns the reason with this number.
    pub fn of(number: u32) -> Option<Reason> {
        use Reason::{Encoding, Exhausted, Locked, NotBegun, NotCreated, Unknown, Wait};
        let all = [Unknown, Wait, Exhausted, NotBegun, Locked, NotCreated, Encoding];
        all.into_iter().find(|reason| *reason as u32 == number)
    }
}

/// A block of a tag's numbers that the registry has assigned to this server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Distinguishes the tag from earlier tags with the same name. It is never 0.
    pub generation: u64,
    /// The first number.
    pub first: i64,
    /// How many numbers the block contains, at least 1.
    pub count: u64,
    /// The length of the shortest block.
    pub step: u64,
    /// The length of the longest block.
    pub max_step: u64,
}

/// The answer to a request for a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakeAnswer {
    /// The block is assigned to this server.
    Taken(Taken),
    /// There is no block. The fields are the reason, and the time until which it applies, in microseconds since the
    /// Unix epoch.
    Refused(Reason, i64),
}

/// The circumstances in which an answer arrives.
#[derive(Clone, Copy, Debug, Default)]
pub struct Arrival {
    /// The time of the monotonic clock.
    pub now: Nanos,
    /// The time of the wall clock, in microseconds since the Unix epoch.
    pub wall: i64,
    /// How long ago the request was sent.
    pub latency: Nanos,
    /// True if the segment does not have a block yet, so that its slot can be reused for a different tag.
    pub empty: bool,
    /// True if this server is allowed to create the tag.
    pub creates: bool,
    /// The generation of the blocks that the segment has had, or 0 if it has had none.
    pub generation: u64,
    /// How long ago the last of these blocks was fetched.
    pub lasted: Option<Nanos>,
    /// How many numbers have been drawn since then.
    pub drawn: u64,
}

/// The numbers at the end of a block that no session has drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rest {
    /// The generation of the tag.
    pub generation: u64,
    /// The nonce of the request for the block.
    pub nonce: Uuid,
    /// The first number.
    pub first: i64,
    /// The last number.
    pub last: i64,
}

/// A block that was fetched from the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// The block to put into the segment.
    pub block: Block,
    /// The whole block, in the form in which it is given back.
    pub rest: Rest,
    /// True if the tag was dropped and created again, so that the numbers in the segment are void.
    pub replaces: bool,
    /// The length of the block, within the limits of the tag.
    length: u64,
}

/// What the server reports to the sessions that wait for a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TagRefusal {
    /// The reason why there is no block.
    pub reason: Reason,
    /// The time until which the refusal applies, in microseconds since the Unix epoch. It is 0 unless the reason is
    /// [`Reason::Wait`].
    pub until: i64,
    /// True if the segment must be closed, because its numbers are void, or because it has no numbers and its slot can
    /// be reused for a different tag.
    pub closes: bool,
    /// True if the server sends the request again as soon as it is due, even if no session requests a number in the
    /// meantime.
    pub again: bool,
}

impl TagRefusal {
    /// Returns a refusal with this reason that closes the segment.
    pub const fn closing(reason: Reason) -> TagRefusal {
        TagRefusal { reason, until: 0, closes: true, again: false }
    }
}

/// What the server must do after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Nothing. The answer belongs to an earlier request.
    Ignored,
    /// Put the block into the segment, and call [`Refill::installed`]. If the segment has no room, give the whole block
    /// back.
    Install(Fetched),
    /// Create the tag, and then send the next request.
    Create,
    /// Report to the sessions why there is no block.
    Refuse(TagRefusal),
}

/// The blocks of one tag that a server has taken, and its next request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Refill {
    newest: Option<Rest>,
    previous: Option<Rest>,
    /// The nonce of the request that has not been answered yet.
    pending: Option<Uuid>,
    /// The length of the last block, within the limits of the tag, or 0 if there was none.
    length: u64,
    /// The time before which a refused request must not be sent again.
    retry: Option<Nanos>,
}

impl Refill {
    /// Returns the time before which no request may be sent, or `None` if a request can be sent now.
    pub const fn retry(&self) -> Option<Nanos> {
        self.retry
    }

    /// Returns true if a request can be sent.
    pub fn is_due(&self, now: Nanos) -> bool {
        self.retry.is_none_or(|retry| now >= retry)
    }

    /// Returns the nonce of the next request and the length of the block to request. The last block was fetched
    /// `lasted` ago. If no unanswered request exists, calls `fresh`, which must return a nonce that has never been
    /// used.
    pub fn request<E>(
        &mut self,
        lasted: Option<Nanos>,
        fresh: impl FnOnce() -> Result<Uuid, E>,
    ) -> Result<(Uuid, u64), E> {
        let nonce = self.pending.map_or_else(fresh, Ok)?;
        self.pending = Some(nonce);
        let length = self.length.max(1);
        Ok((nonce, lasted.map_or(length, |lasted| next_length(length, lasted))))
    }

    /// Processes the answer to the request with this nonce. An answer can arrive late or twice.
    pub fn answer(&mut self, nonce: Uuid, answer: TakeAnswer, arrival: &Arrival) -> Decision {
        if self.pending != Some(nonce) {
            return Decision::Ignored;
        }
        (self.pending, self.retry) = (None, None);
        match answer {
            TakeAnswer::Refused(Reason::Unknown, _) if arrival.creates => Decision::Create,
            TakeAnswer::Refused(reason, until) => Decision::Refuse(self.refuse(reason, until, arrival)),
            TakeAnswer::Taken(taken) => {
                let replaces = arrival.generation != 0 && arrival.generation != taken.generation;
                let lasted = arrival.lasted.filter(|_| !replaces).unwrap_or(0);
                let below = fetch_below(taken.count, arrival.drawn, lasted, arrival.latency);
                let Taken { generation, first, count, step, max_step } = taken;
                let block = Block { first, length: count, fetch_below: below };
                let rest = Rest { generation, nonce, first, last: first + (count - 1) as i64 };
                Decision::Install(Fetched { block, rest, replaces, length: count.clamp(step, max_step.max(step)) })
            }
        }
    }

    /// Determines how to continue if the registry cannot provide a block. The reason comes from the registry's answer
    /// or from an error that it raised.
    pub fn refuse(&mut self, reason: Reason, until: i64, arrival: &Arrival) -> TagRefusal {
        let window = until.saturating_sub(arrival.wall).clamp(WINDOW_WAIT.0, WINDOW_WAIT.1);
        let (closes, wait) = match reason {
            Reason::Wait => (arrival.empty, Some(window.unsigned_abs() * 1_000)),
            Reason::Locked | Reason::Encoding => (arrival.empty, Some(HELD_BACK)),
            Reason::Exhausted => (arrival.empty, None),
            Reason::Unknown | Reason::NotBegun | Reason::NotCreated => (true, None),
        };
        self.retry = wait.filter(|_| !closes).map(|wait| arrival.now + wait);
        let until = if reason == Reason::Wait { arrival.wall.saturating_add(window) } else { 0 };
        TagRefusal { reason, until, closes, again: self.retry.is_some() }
    }

    /// Records that the block is in the segment.
    pub fn installed(&mut self, fetched: &Fetched) {
        if fetched.replaces {
            *self = Refill::default();
        }
        self.length = fetched.length;
        (self.previous, self.newest) = (self.newest, Some(fetched.rest));
    }

    /// Returns the numbers to give back, which are the remaining numbers of the closed segment. The newer block comes
    /// first, because the registry takes back only the end of the highest block.
    pub fn rests(&self, left: Left) -> impl Iterator<Item = Rest> {
        let current = if left.next.count > 0 { self.previous } else { self.newest };
        [(self.newest, left.next), (current, left.current)].into_iter().filter_map(|(block, span)| {
            let block = block.filter(|_| span.count > 0)?;
            Some(Rest { first: span.first, ..block })
        })
    }
}

/// Returns the number of remaining numbers at which the next block is fetched. Sessions drew `drawn` numbers during the
/// last `time`, and a fetch takes `latency`. If `time` is 0, the speed at which sessions draw numbers is not known.
fn fetch_below(length: u64, drawn: u64, time: Nanos, latency: Nanos) -> u64 {
    let below = match time {
        0 => length / 2,
        _ => {
            let wanted = (u128::from(drawn) * u128::from(latency)).saturating_mul(FETCHES) / u128::from(time);
            u64::try_from(wanted).unwrap_or(u64::MAX)
        }
    };
    below.max(length / LAST_PART).clamp(1, length.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    #[test]
    fn the_next_block_is_fetched_before_the_current_one_is_drawn() {
        // 1000 numbers are drawn per second, and a fetch takes 2 ms. During 4 fetches, 8 numbers are drawn, but 10% is
        // 100 numbers.
        assert_eq!(fetch_below(1_000, 1_000, 1_000 * MS, 2 * MS), 100);
        // 100 times as many.
        assert_eq!(fetch_below(1_000, 100_000, 1_000 * MS, 2 * MS), 800);
        assert_eq!(fetch_below(1_000, 1_000_000, 1_000 * MS, 2 * MS), 1_000);
        assert_eq!(fetch_below(1_000, 0, 1_000 * MS, 2 * MS), 100);
        assert_eq!(fetch_below(1_000, 0, 0, 0), 500);
        assert_eq!(fetch_below(1, u64::MAX, 1, Nanos::MAX), 1);
        assert_eq!(fetch_below(1, 0, 0, 0), 1);
    }
}
