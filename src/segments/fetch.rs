//! The registrar's part of segments: it fetches blocks, and gives back what is left.
//!
//! A block is used only after the registry has confirmed its COMMIT: [`crate::pg::libpq::Connection::row`] returns a row only after the
//! end of the transaction, and returns no row if there was a warning. A request without an answer is sent again with the same nonce, so
//! that the registry can answer with the same block.

use std::cell::Cell;
use std::collections::HashMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use flake::fleet::Uuid;
use flake::{Nanos, Span, fetch_below, next_length};

use crate::faults::{self, Fault};
use crate::fleet::grant;
use crate::message::trouble::Trouble;
use crate::pg::background_worker;
use crate::pg::libpq::Failure;
use crate::segments::call::{Answer, Taken};
use crate::segments::connections::{Caller, Terms};
use crate::segments::facts::{Period, Reason};
use crate::segments::failures::Failures;
use crate::segments::newcomers::Newcomers;
use crate::segments::slots::{self as slots, Phase, Slot};
use crate::segments::{known, log};
use crate::server::clock;

/// How long the registrar waits before it asks again for a tag that the registry cannot serve, although sessions wait for it.
const HELD_BACK: Duration = Duration::from_secs(2);

/// How long the registrar gives back numbers before it ends.
const PARTING: Duration = Duration::from_secs(3);

/// A block that this server has taken, and its nonce.
#[derive(Clone, Copy)]
struct Held {
    nonce: Uuid,
    taken: Taken,
}

/// What the registrar knows about the tag of a slot. It forgets it if it is started again after an error, and then gives back nothing.
#[derive(Default)]
struct Tag {
    version: u64,
    newest: Option<Held>,
    previous: Option<Held>,
    /// The nonce of the request that is not answered yet.
    pending: Option<Uuid>,
    /// The length of the next block.
    want: u64,
    /// Not before this time is a refused request sent again.
    retry: Option<Instant>,
}

/// The registrar's part of the segments of this server.
#[derive(Default)]
pub struct Fetcher {
    caller: Caller,
    tags: HashMap<usize, Tag>,
    /// The slot that is served next, among those of segments and in the entrance.
    next: (usize, usize),
    newcomers: Newcomers,
    failures: Failures,
}

impl Fetcher {
    /// Makes this process the one that sessions ask. It goes on where another registrar has ended.
    pub fn start() -> Fetcher {
        slots::own_latch();
        let begun = slots::all().iter().filter(|slot| matches!(slot.phase(), Phase::Asked | Phase::Leaving));
        begun.for_each(Slot::still_wanted);
        Fetcher::default()
    }

    /// Does one thing that a session wants, if there is any. Returns the time after which this function must be called again although no
    /// session asks, or `None` if there is nothing to do.
    pub fn work(&mut self, terms: &Terms) -> Option<Duration> {
        let now = Instant::now();
        let close = self.caller.tend(terms, now);
        if let Some(pause) = self.failures.pause(now) {
            return Some(pause);
        }
        let slots = slots::all();
        let segments = slots::parts().0.len();
        let due = |range: Range<usize>, next: usize| {
            let order = (0..range.len()).map(|n| range.start + (next + n) % range.len());
            order.into_iter().find(|index| self.is_due(*index, &slots[*index], now))
        };
        let (block, newcomer) = (due(0..segments, self.next.0), due(segments..slots.len(), self.next.1));
        let pause = self.newcomers.pause(now).filter(|_| newcomer.is_some());
        let Some(index) = self.newcomers.choose(block, newcomer.filter(|_| pause.is_none())) else {
            self.failures.forget();
            let retries = self.tags.iter().filter(|(index, _)| slots[**index].is_wanted());
            let retry = retries.filter_map(|(_, tag)| tag.retry).min().map(|at| at.saturating_duration_since(now));
            return [retry, close, pause].into_iter().flatten().min();
        };
        match index.checked_sub(segments) {
            None => self.next.0 = index + 1,
            Some(index) => self.next.1 = index + 1,
        }
        slots[index].take_wish();
        match self.serve(index, &slots[index], terms) {
            Ok(true) => self.failures.succeeded(),
            Ok(false) => {}
            Err(Trouble::NoAnswer(Failure::Interrupted)) => slots[index].still_wanted(),
            // The session says so to its user. The log does not, because any role can call with any tag.
            Err(trouble) if lacks_character(&trouble) => self.hold_back(index, &slots[index], Reason::Encoding),
            Err(trouble) => {
                slots[index].still_wanted();
                self.failures.failed(trouble, &slots[index]);
            }
        }
        Some(Duration::ZERO)
    }

    fn is_due(&self, index: usize, slot: &Slot, now: Instant) -> bool {
        let early = || {
            let tag = self.tags.get(&index).filter(|tag| tag.version == slot.version());
            tag.and_then(|tag| tag.retry).is_some_and(|retry| now < retry)
        };
        slot.is_wanted() && (slot.phase() == Phase::Leaving || !early())
    }

    /// Returns true if a session wants something.
    pub fn is_wanted(&self) -> bool {
        slots::all().iter().any(Slot::is_wanted)
    }

    /// Says to the sessions that wait that the registry cannot be asked. The next session that asks makes the registrar retry.
    pub fn fail_all(&mut self, trouble: &Trouble) {
        let wanting: Vec<&Slot> = slots::all().iter().filter(|slot| slot.is_wanted()).collect();
        if let Some(first) = wanting.first() {
            self.failures.failed(trouble.clone(), first);
            wanting.iter().for_each(|slot| _ = slot.take_wish());
        }
    }

    /// Does what a slot wants. Returns true if the registry has answered.
    fn serve(&mut self, index: usize, slot: &Slot, terms: &Terms) -> Result<bool, Trouble> {
        let (name, phase, version, period) = slot.read();
        if slot.is_entrance() {
            return if phase == Phase::Asked { self.look_up(slot, &name, version, period, terms) } else { Ok(false) };
        }
        let tag = self.tags.entry(index).or_default();
        if tag.version != version {
            *tag = Tag { version, want: 1, ..Tag::default() };
        }
        match phase {
            Phase::Leaving => self.give_back(index, slot, &name, terms),
            Phase::Asked => self.fetch(index, slot, &name, period, terms).map(|()| true),
            Phase::Open if slot.segment.has_room() => self.fetch(index, slot, &name, period, terms).map(|()| true),
            // The block is there already.
            Phase::Open | Phase::Free | Phase::Refused => Ok(false),
        }
    }

    /// Fetches a block and gives it to the sessions.
    fn fetch(
        &mut self,
        index: usize,
        slot: &Slot,
        name: &str,
        period: Option<Period>,
        terms: &Terms,
    ) -> Result<(), Trouble> {
        let begun = clock::monotonic();
        let tag = &self.tags[&index];
        let (version, pending, last) = (tag.version, tag.pending, slot.facts.last_fetch.load(RELAXED));
        let want = if last == 0 { tag.want } else { next_length(tag.want, begun.saturating_sub(last)) };
        let sent = Cell::new(pending);
        let answer = self.caller.ask(terms, |line| {
            let nonce = sent.get().map_or_else(|| line.nonce(), Ok)?;
            sent.set(Some(nonce));
            line.take(name, nonce, want).map(|answer| (nonce, answer))
        });
        let tag = self.tags.get_mut(&index).expect("the tag is known");
        tag.pending = sent.get();
        let (nonce, answer) = answer?;
        (tag.pending, tag.retry) = (None, None);
        match answer {
            Answer::Refused(Reason::Unknown, _) => {
                known::forget(name);
                match self.create(name, period, terms)? {
                    None => slot.still_wanted(),
                    Some(reason) => refuse(slot, version, reason),
                }
            }
            Answer::Refused(Reason::Locked, _) => {
                if !slot.refusal.get().is_some_and(|(reason, _)| reason == Reason::Locked) {
                    log::locked(name);
                }
                self.hold_back(index, slot, Reason::Locked);
            }
            Answer::Refused(reason, until) => {
                slot.refusal.set(reason, until);
                // A slot that has never had a number can get another tag.
                if reason == Reason::Exhausted && slot.phase() == Phase::Asked {
                    slot.refuse(version, reason);
                }
                if reason == Reason::Wait {
                    let pause = u64::try_from(until.saturating_sub(grant::now())).unwrap_or(0);
                    tag.retry = Some(Instant::now() + Duration::from_micros(pause.clamp(100_000, 1_200_000_000)));
                    slot.still_wanted();
                }
                slot.note_unanswered();
            }
            Answer::Taken(taken) => self.put(index, slot, name, Held { nonce, taken }, begun, terms)?,
        }
        Ok(())
    }

    /// Looks up a tag of which this server does not know whether it exists. If it is one of a period, creates it. If it exists then, frees
    /// its slot, so that the session takes a slot of a segment. Returns true, because the registry has answered.
    fn look_up(
        &mut self,
        slot: &Slot,
        name: &str,
        version: u64,
        period: Option<Period>,
        terms: &Terms,
    ) -> Result<bool, Trouble> {
        let refused = match self.caller.ask(terms, |line| line.exists(name)) {
            Err(trouble) if lacks_character(&trouble) => Some(Reason::Encoding),
            Err(trouble) => return Err(trouble),
            Ok(true) => None,
            Ok(false) => {
                self.newcomers.note_unknown(Instant::now());
                self.create(name, period, terms)?
            }
        };
        match refused {
            Some(reason) => refuse(slot, version, reason),
            None => {
                known::note(name);
                slot.free(version);
            }
        }
        Ok(true)
    }

    /// Creates a tag if it is one of a period. Returns why the registry does not create it.
    fn create(&mut self, name: &str, period: Option<Period>, terms: &Terms) -> Result<Option<Reason>, Trouble> {
        let Some(period) = period else { return Ok(Some(Reason::Unknown)) };
        match self.caller.ask(terms, |line| line.begin(name, &period)) {
            Err(trouble @ Trouble::NoAnswer(Failure::Raised { .. })) => {
                log::not_created(name, &trouble);
                Ok(Some(Reason::NotCreated))
            }
            begun => begun,
        }
    }

    /// Gives a block to the sessions. If its slot is not this tag's any more, gives it back to the registry.
    fn put(
        &mut self,
        index: usize,
        slot: &Slot,
        name: &str,
        held: Held,
        begun: Nanos,
        terms: &Terms,
    ) -> Result<(), Trouble> {
        let (now, taken, facts) = (clock::monotonic(), held.taken, &slot.facts);
        let tag = self.tags.get_mut(&index).expect("the tag is known");
        let (version, generation) = (tag.version, facts.generation.load(RELAXED));
        let other = generation != 0 && generation != taken.generation;
        let replace = other && !faults::on(Fault::GenerationIgnored);
        let drawn = slot.drawn();
        let (last, last_drawn) = (facts.last_fetch.load(RELAXED), facts.last_drawn.load(RELAXED));
        let since = if last == 0 || replace { 0 } else { now.saturating_sub(last) };
        let below = fetch_below(taken.count, drawn.saturating_sub(last_drawn), since, now.saturating_sub(begun));
        let Some(given) = slot.give(version, taken.block(below), replace) else {
            let (first, last) = (taken.first, taken.last());
            return self
                .caller
                .ask(terms, |line| line.give_back(name, taken.generation, held.nonce, first, last))
                .map(drop);
        };
        if replace {
            log::created_again(name);
            *tag = Tag { version: given, ..Tag::default() };
        }
        tag.want = taken.count.clamp(taken.step, taken.max_step.max(taken.step));
        (tag.previous, tag.newest) = (tag.newest, Some(held));
        facts.generation.store(taken.generation, RELAXED);
        facts.highest.fetch_max(taken.last() as u64, RELAXED);
        facts.given.fetch_add(taken.count, RELAXED);
        facts.step.store(taken.count, RELAXED);
        facts.fetches.fetch_add(1, RELAXED);
        if !replace {
            facts.fetch_before.store(last, RELAXED);
            facts.drawn_before.store(last_drawn, RELAXED);
            facts.last_drawn.store(drawn, RELAXED);
        }
        facts.last_fetch.store(now, RELAXED);
        known::note(name);
        slot.refusal.clear();
        slot.changed.wake_all();
        Ok(())
    }

    /// Gives back what is left in a closed slot, the newer block first, and frees the slot. After an error, the numbers are lost. Returns
    /// true if the registry has answered.
    fn give_back(&mut self, index: usize, slot: &Slot, name: &str, terms: &Terms) -> Result<bool, Trouble> {
        let tag = self.tags.remove(&index).unwrap_or_default();
        let version = tag.version;
        let left = slot.segment.left();
        let (of_next, of_current) = if left.next.count > 0 { (tag.newest, tag.previous) } else { (None, tag.newest) };
        let rests: Vec<(Held, Span)> = [(of_next, left.next), (of_current, left.current)]
            .into_iter()
            .filter_map(|(held, span)| Some((held?, span)).filter(|(_, span)| span.count > 0))
            .collect();
        let asked = !rests.is_empty();
        let given = rests.into_iter().try_for_each(|(held, span)| {
            let (generation, last) = (held.taken.generation, held.taken.last());
            self.caller.ask(terms, |line| line.give_back(name, generation, held.nonce, span.first, last)).map(drop)
        });
        slot.free(version);
        match given {
            // The slot is free, so nothing asks for this again.
            Err(Trouble::NoAnswer(Failure::Interrupted)) => Ok(false),
            given => given.map(|()| asked),
        }
    }

    /// Closes all segments and gives back what is left in them, because the server stops. After some seconds, the rest is lost.
    pub fn part(&mut self, terms: Option<&Terms>) {
        background_worker::part();
        let deadline = Instant::now() + PARTING;
        slots::all().iter().filter(|slot| slot.phase() != Phase::Free).for_each(Slot::leave);
        for (index, slot) in slots::all().iter().enumerate() {
            let (name, phase, version, _) = slot.read();
            let known = self.tags.get(&index).is_some_and(|tag| tag.version == version);
            let time = deadline.saturating_duration_since(Instant::now());
            let terms = terms.filter(|_| phase == Phase::Leaving && known && !time.is_zero());
            let Some(terms) = terms else { continue };
            let terms = Terms { time, ..*terms };
            if self.give_back(index, slot, &name, &terms).is_err() {
                break;
            }
        }
        slots::all().iter().for_each(|slot| slot.free(slot.version()));
    }

    /// Closes all segments and forgets their numbers, because a copy of this server has them, too.
    pub fn discard(&mut self) {
        slots::all().iter().for_each(|slot| slot.free(slot.version()));
        self.tags.clear();
        self.caller = Caller::default();
    }

    /// Retries at once what has failed, because the registry has answered.
    pub fn retry_now(&mut self) {
        self.failures.retry_now();
    }

    /// Says to the sessions that wait for a tag why the registry issues no block of it, and asks again later if the slot has a segment.
    /// The other tags are served meanwhile.
    fn hold_back(&mut self, index: usize, slot: &Slot, reason: Reason) {
        // After a failed give_back(), the slot is free already.
        let Some(tag) = self.tags.get_mut(&index) else { return };
        slot.refusal.set(reason, 0);
        match slot.phase() {
            // A slot that has never had a number can get another tag.
            Phase::Asked => slot.refuse(tag.version, reason),
            _ => {
                tag.retry = Some(Instant::now() + HELD_BACK);
                slot.still_wanted();
            }
        }
        slot.note_unanswered();
    }
}

/// Tells the sessions that wait for a number of a tag why there is none.
fn refuse(slot: &Slot, version: u64, reason: Reason) {
    slot.refuse(version, reason);
    slot.note_unanswered();
}

/// Returns true if the encoding of the registry's database lacks a character of the tag.
fn lacks_character(trouble: &Trouble) -> bool {
    // character_not_in_repertoire, untranslatable_character
    matches!(trouble, Trouble::NoAnswer(Failure::Raised { code, .. }) if ["22021", "22P05"].contains(&code.as_str()))
}

const RELAXED: std::sync::atomic::Ordering = std::sync::atomic::Ordering::Relaxed;
