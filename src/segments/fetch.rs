//! The registrar's work for segments: fetching blocks. [`Refill`] decides which request to send for a tag and interprets
//! the answers.
//!
//! A block is used only after the registry has confirmed its COMMIT. [`crate::pg::libpq::Connection::row`] returns a
//! row only after the end of the transaction, and returns no rows if there was a warning.

use std::collections::HashMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use flake::Nanos;
use flake::segment_refill::{Arrival, Decision, Fetched, Reason, Refill, TagRefusal, TakeAnswer};

use crate::faults::{self, Fault};
use crate::fleet::grant;
use crate::message::registry::Trouble;
use crate::message::segment;
use crate::pg::libpq::QueryFailure;
use crate::segments::connections::{RegistryConnection, RequestContext};
use crate::segments::facts::PeriodTag;
use crate::segments::failures::Failures;
use crate::segments::known;
use crate::segments::newcomers::Newcomers;
use crate::segments::slots::{self as slots, Phase, Slot};
use crate::server::clock;

/// The registrar's state for the tag of a slot. If the registrar is restarted after an error, this state is lost, and
/// the numbers of the tag are not returned to the registry.
#[derive(Default)]
pub(super) struct FetchState {
    pub(super) version: u64,
    pub(super) refill: Refill,
}

/// The slot being served, and its tag.
pub(super) struct Task {
    pub(super) index: usize,
    pub(super) slot: &'static Slot,
    pub(super) name: String,
    pub(super) phase: Phase,
    pub(super) version: u64,
    period: Option<PeriodTag>,
}

impl Task {
    pub(super) fn of(index: usize) -> Task {
        let slot = &slots::all()[index];
        let (name, phase, version, period) = slot.read();
        Task { index, slot, name, phase, version, period }
    }
}

/// The registrar's state for this server's segments.
#[derive(Default)]
pub struct Fetcher {
    pub(super) connection: RegistryConnection,
    pub(super) tags: HashMap<usize, FetchState>,
    /// The index of the next slot to serve, among the slots of segments and among the slots of the entrance.
    next: (usize, usize),
    newcomers: Newcomers,
    failures: Failures,
}

impl Fetcher {
    /// Makes this process the one that sessions wake. It continues the work of a previous registrar.
    pub fn start() -> Fetcher {
        slots::own_latch();
        let begun = slots::all().iter().filter(|slot| matches!(slot.phase(), Phase::Asked | Phase::Leaving));
        begun.for_each(Slot::still_wanted);
        Fetcher::default()
    }

    /// Performs one task that a session has requested, if there is any. Returns the time after which this function must
    /// be called again even if no session requests anything, or `None` if there is nothing to do.
    pub fn work(&mut self, context: &RequestContext) -> Option<Duration> {
        let (now, monotonic) = (Instant::now(), clock::monotonic());
        let close = self.connection.close_if_idle(context, now);
        if let Some(pause) = self.failures.pause(now) {
            return Some(pause);
        }
        let slots = slots::all();
        let segments = slots::parts().0.len();
        let due = |range: Range<usize>, next: usize| {
            let order = (0..range.len()).map(|n| range.start + (next + n) % range.len());
            order.into_iter().find(|index| self.is_due(*index, &slots[*index], monotonic))
        };
        let (block, newcomer) = (due(0..segments, self.next.0), due(segments..slots.len(), self.next.1));
        let pause = self.newcomers.pause(now).filter(|_| newcomer.is_some());
        let Some(index) = self.newcomers.choose(block, newcomer.filter(|_| pause.is_none())) else {
            self.failures.forget();
            let retries = self.tags.iter().filter(|(index, _)| slots[**index].is_wanted());
            let retry = retries.filter_map(|(_, tag)| tag.refill.retry()).min();
            let retry = retry.map(|at| Duration::from_nanos(at.saturating_sub(monotonic)));
            return [retry, close, pause].into_iter().flatten().min();
        };
        match index.checked_sub(segments) {
            None => self.next.0 = index + 1,
            Some(index) => self.next.1 = index + 1,
        }
        slots[index].take_wish();
        match self.serve(&Task::of(index), context) {
            Ok(true) => self.failures.succeeded(),
            Ok(false) => {}
            Err(Trouble::NoAnswer(QueryFailure::Interrupted)) => slots[index].still_wanted(),
            // The session reports this error to its user. It is not logged, because any role can pass any tag.
            Err(trouble) if lacks_character(&trouble) => {
                // After a failed give_back(), the slot is already free.
                if let Some(tag) = self.tags.get_mut(&index) {
                    let arrival = arrival(&slots[index], clock::monotonic(), false);
                    refuse(&slots[index], tag.version, tag.refill.refuse(Reason::Encoding, 0, &arrival));
                }
            }
            Err(trouble) => {
                slots[index].still_wanted();
                self.failures.failed(trouble, &slots[index]);
            }
        }
        Some(Duration::ZERO)
    }

    fn is_due(&self, index: usize, slot: &Slot, now: Nanos) -> bool {
        let early = |tag: &FetchState| tag.version == slot.version() && !tag.refill.is_due(now);
        slot.is_wanted() && (slot.phase() == Phase::Leaving || !self.tags.get(&index).is_some_and(early))
    }

    /// Returns true if a session has requested anything.
    pub fn is_wanted(&self) -> bool {
        slots::all().iter().any(Slot::is_wanted)
    }

    /// Reports to the waiting sessions that the registry cannot be reached. The registrar retries at the next request
    /// from a session.
    pub fn fail_all(&mut self, trouble: &Trouble) {
        let wanting: Vec<&Slot> = slots::all().iter().filter(|slot| slot.is_wanted()).collect();
        if let Some(first) = wanting.first() {
            self.failures.failed(trouble.clone(), first);
            wanting.iter().for_each(|slot| _ = slot.take_wish());
        }
    }

    /// Performs the task that was requested for a slot. Returns true if the registry has answered.
    fn serve(&mut self, task: &Task, context: &RequestContext) -> Result<bool, Trouble> {
        let Task { index, slot, phase, version, .. } = *task;
        if slot.is_entrance() {
            return if phase == Phase::Asked { self.look_up(task, context) } else { Ok(false) };
        }
        let tag = self.tags.entry(index).or_default();
        if tag.version != version {
            *tag = FetchState { version, ..FetchState::default() };
        }
        match phase {
            Phase::Leaving => self.give_back(task, context),
            Phase::Asked => self.fetch(task, context).map(|()| true),
            Phase::Open if slot.segment.has_room() => self.fetch(task, context).map(|()| true),
            // The block has already been fetched.
            Phase::Open | Phase::Free | Phase::Refused => Ok(false),
        }
    }

    /// Fetches a block and makes it available to the sessions.
    fn fetch(&mut self, task: &Task, context: &RequestContext) -> Result<(), Trouble> {
        let Task { index, slot, ref name, version, period, .. } = *task;
        let (begun, facts) = (clock::monotonic(), &slot.facts);
        let tag = self.tags.get_mut(&index).expect("the tag is known");
        let (nonce, answer) = self.connection.request(context, |client| {
            let (nonce, length) = tag.refill.request(facts.lasted(begun), || client.nonce())?;
            client.take(name, nonce, length).map(|answer| (nonce, answer))
        })?;
        if matches!(answer, TakeAnswer::Refused(Reason::Unknown, _)) {
            known::forget(name);
        }
        match tag.refill.answer(nonce, answer, &arrival(slot, begun, period.is_some())) {
            Decision::Ignored => {}
            Decision::Install(fetched) => self.install(task, &fetched, context)?,
            Decision::Create => match self.create(task, context)? {
                None => slot.still_wanted(),
                Some(reason) => refuse(slot, version, TagRefusal::closing(reason)),
            },
            Decision::Refuse(refusal) => {
                let before = slot.refusal.get().map(|(reason, _)| reason);
                if refusal.reason == Reason::Locked && before != Some(Reason::Locked) {
                    segment::locked(name);
                }
                refuse(slot, version, refusal);
            }
        }
        Ok(())
    }

    /// Looks up a tag if this server does not know whether it exists, and creates the tag if it belongs to a period. If
    /// the tag exists afterwards, frees its slot, so that the session takes a slot of a segment. Returns true to
    /// indicate that the registry has answered.
    fn look_up(&mut self, task: &Task, context: &RequestContext) -> Result<bool, Trouble> {
        let Task { slot, ref name, version, .. } = *task;
        let refused = match self.connection.request(context, |client| client.exists(name)) {
            Err(trouble) if lacks_character(&trouble) => Some(Reason::Encoding),
            Err(trouble) => return Err(trouble),
            Ok(true) => None,
            Ok(false) => {
                self.newcomers.note_unknown(Instant::now());
                self.create(task, context)?
            }
        };
        match refused {
            Some(reason) => refuse(slot, version, TagRefusal::closing(reason)),
            None => {
                known::note(name);
                slot.free(version);
            }
        }
        Ok(true)
    }

    /// Creates a tag if it belongs to a period. If the registry does not create it, returns the reason.
    fn create(&mut self, task: &Task, context: &RequestContext) -> Result<Option<Reason>, Trouble> {
        let Some(period) = task.period else { return Ok(Some(Reason::Unknown)) };
        match self.connection.request(context, |client| client.begin(&task.name, &period)) {
            Err(trouble @ Trouble::NoAnswer(QueryFailure::Raised { .. })) => {
                segment::not_created(&task.name, &trouble);
                Ok(Some(Reason::NotCreated))
            }
            begun => begun,
        }
    }

    /// Makes a block available to the sessions. If its slot no longer belongs to this tag, returns the block to the
    /// registry.
    fn install(&mut self, task: &Task, fetched: &Fetched, context: &RequestContext) -> Result<(), Trouble> {
        let Task { index, slot, ref name, .. } = *task;
        let (now, drawn) = (clock::monotonic(), slot.drawn());
        let tag = self.tags.get_mut(&index).expect("the tag is known");
        let Some(version) = slot.give(tag.version, fetched.block, fetched.replaces) else {
            return self.connection.request(context, |client| client.give_back(name, &fetched.rest)).map(drop);
        };
        if fetched.replaces {
            segment::created_again(name);
        }
        tag.version = version;
        tag.refill.installed(fetched);
        slot.facts.note(fetched, now, drawn);
        known::note(name);
        slot.refusal.clear();
        slot.changed.wake_all();
        Ok(())
    }

    /// Closes all segments and discards their numbers, because a copy of this server has the same numbers.
    pub fn discard(&mut self) {
        slots::all().iter().for_each(|slot| slot.free(slot.version()));
        self.tags.clear();
        self.connection = RegistryConnection::default();
    }

    /// Retries failed requests immediately, because the registry has answered.
    pub fn retry_now(&mut self) {
        self.failures.retry_now();
    }
}

/// Returns the circumstances in which the answer to a request arrives. The request was sent at `begun`. `creates` is
/// true for the tag of a period.
fn arrival(slot: &Slot, begun: Nanos, creates: bool) -> Arrival {
    let (now, facts) = (clock::monotonic(), &slot.facts);
    Arrival {
        now,
        wall: grant::now(),
        latency: now.saturating_sub(begun),
        empty: slot.phase() == Phase::Asked,
        creates,
        generation: if faults::on(Fault::GenerationIgnored) { 0 } else { facts.generation.load(RELAXED) },
        lasted: facts.lasted(now),
        drawn: slot.drawn().saturating_sub(facts.last_drawn.load(RELAXED)),
    }
}

/// Reports to the sessions that are waiting for a number of a tag why no number is available. The registrar continues
/// to serve other tags.
fn refuse(slot: &Slot, version: u64, refusal: TagRefusal) {
    match refusal.closes {
        true => slot.refuse(version, refusal.reason, refusal.until),
        false => slot.refusal.set(refusal.reason, refusal.until),
    }
    if refusal.again {
        slot.still_wanted();
    }
    slot.note_unanswered();
}

/// Returns true if the tag contains a character that does not exist in the encoding of the registry's database.
fn lacks_character(trouble: &Trouble) -> bool {
    // character_not_in_repertoire, untranslatable_character
    matches!(trouble, Trouble::NoAnswer(QueryFailure::Raised { code, .. }) if ["22021", "22P05"].contains(&code.as_str()))
}

const RELAXED: std::sync::atomic::Ordering = std::sync::atomic::Ordering::Relaxed;
