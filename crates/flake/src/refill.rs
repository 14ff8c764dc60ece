//! How a server refills the segment of one tag: which request it sends to the registry, and what an answer means.
//!
//! A server repeats these steps:
//!
//! 1. If [`Refill::is_due`], call [`Refill::request`] and send the request. If there is no answer, repeat this step: the request has the
//!    same nonce, so that the registry can answer with the same block.
//! 2. Pass the answer to [`Refill::answer`], and do what the [`Decision`] says. The registry must have committed before it answers.
//!
//! To end, close the segment and give back the [`Refill::rests`]. Then begin the next tag with a new `Refill`. A server that has lost its
//! `Refill` goes on with a new one, and does not give back the numbers of earlier blocks.

use crate::Nanos;
use crate::block_size::{fetch_below, next_length};
use crate::fleet::Uuid;
use crate::segment::{Block, Left};

/// How long a server waits before it asks again for a tag that the registry cannot serve, although sessions wait for it.
const HELD_BACK: Nanos = 2_000_000_000;

/// The shortest and the longest wait for the next window of a tag, in microseconds. The clock of the registry can be ahead.
const WINDOW_WAIT: (i64, i64) = (100_000, 1_200_000_000);

/// Why the registry issues no block of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Reason {
    /// There is no such tag.
    Unknown = 1,
    /// The tag has issued as many numbers as it may within some minutes.
    Wait,
    /// The tag has issued its last number.
    Exhausted,
    /// The tag is one of a period that has not begun.
    NotBegun,
    /// Another session has locked the tag in the registry.
    Locked,
    /// The registry has raised an error instead of creating the tag.
    NotCreated,
    /// The encoding of the registry's database lacks a character of the tag.
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

/// A block of a tag that the registry has given to this server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Distinguishes the tag from earlier tags of the same name. Never 0.
    pub generation: u64,
    /// The first number.
    pub first: i64,
    /// How many numbers there are, from 1.
    pub count: u64,
    /// The length of the shortest block.
    pub step: u64,
    /// The length of the longest block.
    pub max_step: u64,
}

/// The answer to a request for a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakeAnswer {
    /// The block is this server's.
    Taken(Taken),
    /// There is no block, for this reason, and until this time in microseconds since the Unix epoch.
    Refused(Reason, i64),
}

/// What is the case when an answer arrives.
#[derive(Clone, Copy, Debug, Default)]
pub struct Arrival {
    /// The time of the monotonic clock.
    pub now: Nanos,
    /// The time of the wall clock, in microseconds since the Unix epoch.
    pub wall: i64,
    /// How long ago the request was sent.
    pub latency: Nanos,
    /// True if the segment has no block yet, so that its slot can get another tag.
    pub empty: bool,
    /// True if this server may create the tag.
    pub creates: bool,
    /// The generation of the blocks that the segment has had, or 0 if it had none.
    pub generation: u64,
    /// How long ago the last of these blocks was fetched.
    pub lasted: Option<Nanos>,
    /// How many numbers were drawn since then.
    pub drawn: u64,
}

/// Numbers of one block that nobody has drawn, up to the last number of the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rest {
    /// The generation of the tag.
    pub generation: u64,
    /// The nonce with which the block was taken.
    pub nonce: Uuid,
    /// The first number.
    pub first: i64,
    /// The last number.
    pub last: i64,
}

/// A block that was fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// The block for the segment.
    pub block: Block,
    /// The whole block, as it is given back.
    pub rest: Rest,
    /// True if the tag was dropped and created again, so that the numbers in the segment are void.
    pub replaces: bool,
    /// The length of the block within the limits of the tag.
    length: u64,
}

/// What to tell the sessions that wait for a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TagRefusal {
    /// Why there is no block.
    pub reason: Reason,
    /// Until when the refusal lasts, in microseconds since the Unix epoch, or 0.
    pub until: i64,
    /// True if the segment is closed: its numbers are void, or it has none and its slot can get another tag.
    pub closes: bool,
    /// True if the request is sent again as soon as it is due, although no session asks again.
    pub again: bool,
}

impl TagRefusal {
    /// Returns a refusal that closes the segment.
    pub const fn closing(reason: Reason) -> TagRefusal {
        TagRefusal { reason, until: 0, closes: true, again: false }
    }
}

/// What an answer means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The answer belongs to an earlier request. It has changed nothing.
    Ignored,
    /// Put the block into the segment, and call [`Refill::installed`]. If the segment has no room, give back the whole block.
    Install(Fetched),
    /// Create the tag, and then send the next request.
    Create,
    /// Tell the sessions why there is no block.
    Refuse(TagRefusal),
}

/// The blocks of one tag that a server has taken, and its next request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Refill {
    newest: Option<Rest>,
    previous: Option<Rest>,
    /// The nonce of the request that is not answered yet.
    pending: Option<Uuid>,
    /// The length of the last block within the limits of the tag, or 0.
    length: u64,
    /// Not before this time is a refused request sent again.
    retry: Option<Nanos>,
}

impl Refill {
    /// Returns the time before which no request is sent, if there is one.
    pub const fn retry(&self) -> Option<Nanos> {
        self.retry
    }

    /// Returns true if a request can be sent.
    pub fn is_due(&self, now: Nanos) -> bool {
        self.retry.is_none_or(|retry| now >= retry)
    }

    /// Returns the nonce and the length of the block to ask for. The last block was fetched `lasted` ago. Calls `fresh` for a nonce that
    /// nobody has unless a request is not answered yet.
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

    /// Takes the answer to a request with this nonce. An answer can be late or doubled.
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

    /// Decides how to go on if there is no block for this reason, which the registry has answered, or which its error means.
    pub fn refuse(&mut self, reason: Reason, until: i64, arrival: &Arrival) -> TagRefusal {
        let (closes, wait) = match reason {
            Reason::Wait => {
                let wait = until.saturating_sub(arrival.wall).clamp(WINDOW_WAIT.0, WINDOW_WAIT.1);
                (false, Some(wait.unsigned_abs() * 1_000))
            }
            Reason::Locked | Reason::Encoding => (arrival.empty, (!arrival.empty).then_some(HELD_BACK)),
            Reason::Exhausted => (arrival.empty, None),
            Reason::Unknown | Reason::NotBegun | Reason::NotCreated => (true, None),
        };
        if let Some(wait) = wait {
            self.retry = Some(arrival.now + wait);
        }
        TagRefusal { reason, until, closes, again: wait.is_some() }
    }

    /// Notes that a block is in the segment.
    pub fn installed(&mut self, fetched: &Fetched) {
        if fetched.replaces {
            *self = Refill::default();
        }
        self.length = fetched.length;
        (self.previous, self.newest) = (self.newest, Some(fetched.rest));
    }

    /// Returns what to give back of what is left in the segment, which is closed. The newer block comes first, because the registry takes
    /// back only the end of the highest block.
    pub fn rests(&self, left: Left) -> impl Iterator<Item = Rest> {
        let current = if left.next.count > 0 { self.previous } else { self.newest };
        [(self.newest, left.next), (current, left.current)].into_iter().filter_map(|(block, span)| {
            let block = block.filter(|_| span.count > 0)?;
            Some(Rest { first: span.first, ..block })
        })
    }
}
