//! A world: the registry's segments with the hosts that run the registry one after the other, servers, and messages on their way.

use std::collections::BTreeMap;
use std::convert::Infallible;

use flake::fleet::{Begun, FAR, MARGIN, NoBlock, ReportAnswer, Source, TagBlock, Tags, UNKNOWN_STEPS, Uuid};
use flake::segment_refill::{Arrival, Decision, Reason, Refill, Rest, TakeAnswer, Taken};
use flake::{Nanos, Segment};

use crate::faults::{self, TagFault};
use crate::random::Random;

pub const GAP: i64 = MARGIN.as_micros() as i64;
pub const LONG: i64 = FAR.as_micros() as i64;
const BEGIN: i64 = 1_700_000_000_000_000;
pub const TAGS: [&str; 2] = ["a", "b"];
/// The tag of a period, in worlds that have one.
pub const PERIOD: usize = 1;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TagFailure {
    /// A number was drawn twice.
    Duplicate { number: i64 },
    /// A block in use is above everything that the registry takes to be lost.
    Ahead { last: i64 },
    /// A tag gives no block although everything works again.
    Stuck(NoBlock),
}

impl TagFailure {
    pub fn kind(&self) -> &'static str {
        match self {
            TagFailure::Duplicate { .. } => "duplicate",
            TagFailure::Ahead { .. } => "ahead",
            TagFailure::Stuck(_) => "stuck",
        }
    }
}

/// What one host of the registry has stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTags {
    pub tags: Tags,
    pub source: Source,
    /// The latest heartbeat, or when the life began.
    pub seen: i64,
    pub quarantine_until: i64,
}

/// What a server has of one tag.
#[derive(Default)]
pub struct TagSlot {
    pub segment: Segment,
    pub refill: Refill,
    /// The generation of the numbers in the segment, or 0 if it has had none.
    pub generation: u64,
    /// The last number of the highest block.
    pub highest: i64,
    /// When the last block was fetched.
    fetched: Option<i64>,
    /// True if the segment is closed to be given back, and the answer to a request is awaited.
    leaving: bool,
}

impl TagSlot {
    /// Returns true if the segment needs a block.
    pub fn needs(&self) -> bool {
        !self.leaving && (self.segment.is_closed() || self.segment.has_room())
    }

    fn lasted(&self, time: i64) -> Option<Nanos> {
        self.fetched.map(|fetched| nanos(time - fetched))
    }
}

pub fn nanos(micros: i64) -> Nanos {
    micros.max(0).unsigned_abs() * 1_000
}

#[derive(Default)]
pub struct TagServer {
    pub slots: [TagSlot; 2],
    pub cut: bool,
}

#[derive(Clone, Copy, Debug)]
pub enum Message {
    Take { server: usize, tag: usize, nonce: Uuid, want: i64 },
    Taken { server: usize, tag: usize, answer: Result<TagBlock, NoBlock>, nonce: Uuid },
    Begin,
    GiveBack { tag: usize, rest: Rest },
    Report { tag: usize, generation: u64, last: i64 },
}

impl Message {
    /// Returns true if this is a request of a server for a block of a tag, or the answer.
    fn asks(&self, by: usize, of: usize) -> bool {
        matches!(self, Message::Take { server, tag, .. } | Message::Taken { server, tag, .. } if (*server, *tag) == (by, of))
    }
}

#[derive(Clone, Copy, Debug)]
pub struct TagSetup {
    pub fault: TagFault,
    pub servers: usize,
    pub step: i64,
    pub max_step: i64,
    pub start: i64,
    /// When the period of the tag [`PERIOD`] begins, after the world does. Without it, administrators create both tags.
    pub period: Option<i64>,
    /// Whether a block that is ahead of the registry is a failure before any number is drawn twice.
    pub strict: bool,
}

pub struct TagWorld {
    pub setup: TagSetup,
    pub time: i64,
    /// How far the registry's clock is ahead, from 0 to [`GAP`].
    pub ahead: i64,
    pub state: StoredTags,
    pub source: Source,
    pub newest: Source,
    pub history: Vec<(i64, StoredTags)>,
    pub lost: bool,
    pub lost_in_quarantine: bool,
    pub servers: Vec<TagServer>,
    pub wire: Vec<Message>,
    nonces: Random,
    /// The numbers that were drawn, by tag, generation and first number.
    ledger: BTreeMap<(usize, u64, i64), i64>,
    pub drawn: u64,
    pub failure: Option<TagFailure>,
}

impl TagWorld {
    pub fn new(setup: TagSetup) -> TagWorld {
        let source = Source { system: 1, timeline: 1, tables: 1 };
        let time = BEGIN;
        let tags = Tags { life: 1, ..Tags::default() };
        let mut world = TagWorld {
            setup,
            time,
            ahead: 0,
            state: StoredTags { tags, source, seen: time, quarantine_until: 0 },
            source,
            newest: source,
            history: Vec::new(),
            lost: false,
            lost_in_quarantine: false,
            servers: (0..setup.servers).map(|_| TagServer::default()).collect(),
            wire: Vec::new(),
            nonces: Random(7),
            ledger: BTreeMap::new(),
            drawn: 0,
            failure: None,
        };
        world.create(0);
        world
    }

    pub fn nonce(&mut self) -> Uuid {
        Uuid(u128::from(self.nonces.next()) << 64 | u128::from(self.nonces.next()))
    }

    pub fn now(&self) -> i64 {
        self.time + self.ahead
    }

    fn within(&self) -> bool {
        self.state.quarantine_until > 0 && self.now() <= self.state.quarantine_until + GAP
    }

    /// Before each call: keeps the state as one to which the registry can be set back, and begins a new life if the registry moved.
    fn called(&mut self) {
        if self.history.last().is_none_or(|(_, state)| *state != self.state) {
            self.history.push((self.time, self.state.clone()));
        }
        let (old, new) = (self.state.source, self.source);
        if old == new {
            return;
        }
        let (now, within) = (self.now(), self.within());
        let foreign = old.system != new.system;
        let steps = if foreign { UNKNOWN_STEPS } else { new.timeline - old.timeline };
        let lives = if foreign { 1 } else { u64::from(steps) };
        faults::begin_life(self.setup.fault, &mut self.state.tags, (now, self.state.seen), lives, steps, within);
        self.state.source = new;
        self.state.seen = now;
        self.state.quarantine_until = self.state.quarantine_until.max(now + LONG);
        self.lost_in_quarantine = self.lost || (within && self.lost_in_quarantine);
        self.lost = false;
        if foreign {
            // Losing this life is outside the promise.
            self.history.clear();
        }
    }

    pub fn create(&mut self, tag: usize) {
        if self.is_period(tag) {
            return;
        }
        self.called();
        let (fresh, now) = (self.nonce(), self.now());
        faults::create(&self.setup, &mut self.state.tags, now, TAGS[tag], fresh);
    }

    fn is_period(&self, tag: usize) -> bool {
        tag == PERIOD && self.setup.period.is_some()
    }

    /// A server asks for the tag of the period.
    pub fn begin(&mut self) {
        let Some(begins) = self.setup.period.map(|after| BEGIN + after) else { return };
        self.called();
        let (fresh, now) = (self.nonce(), self.now());
        let begun = faults::begin(&self.setup, &mut self.state.tags, now, TAGS[PERIOD], begins, fresh);
        if begun == Begun::Early {
            assert!(now < begins, "a period has begun");
        }
    }

    pub fn drop_tag(&mut self, tag: usize) {
        if self.is_period(tag) {
            return;
        }
        self.called();
        self.state.tags.drop(TAGS[tag]);
    }

    pub fn ask(&mut self, tag: usize, nonce: Uuid, want: i64) -> Result<TagBlock, NoBlock> {
        self.called();
        let now = self.now();
        faults::take(self.setup.fault, &mut self.state.tags, now, TAGS[tag], nonce, want)
    }

    pub fn give_back(&mut self, tag: usize, rest: &Rest) {
        self.called();
        let fresh = self.nonce();
        let _ = faults::give_back(self.setup.fault, &mut self.state.tags, TAGS[tag], rest, fresh);
    }

    pub fn report(&mut self, tag: usize, generation: u64, last: i64) -> ReportAnswer {
        self.called();
        let fresh = self.nonce();
        faults::report(self.setup.fault, &mut self.state.tags, TAGS[tag], generation, last, fresh)
    }

    /// A heartbeat with its reports.
    pub fn beat(&mut self, server: usize) {
        if self.servers[server].cut {
            return;
        }
        self.called();
        self.state.seen = self.state.seen.max(self.now());
        for (tag, name) in TAGS.iter().enumerate() {
            let slot = &self.servers[server].slots[tag];
            let (generation, last) = (slot.generation, slot.highest);
            if slot.segment.is_closed() {
                continue;
            }
            let tags = &self.state.tags;
            if let Some(segment) = tags.segments.get(*name).filter(|segment| segment.generation == generation)
                && self.setup.strict
                && i128::from(last) >= i128::from(segment.next) + tags.pending(segment)
            {
                self.fail(TagFailure::Ahead { last });
            }
            match self.report(tag, generation, last) {
                ReportAnswer::Current | ReportAnswer::Raised | ReportAnswer::Ahead => {}
                ReportAnswer::UnknownTag | ReportAnswer::Generation => {
                    self.servers[server].slots[tag] = TagSlot::default();
                }
            }
        }
    }

    pub fn fail(&mut self, failure: TagFailure) {
        self.failure.get_or_insert(failure);
    }

    /// Draws numbers of a tag on a server.
    pub fn draw(&mut self, server: usize, tag: usize, count: i64) {
        let TagSlot { segment, generation, .. } = &self.servers[server].slots[tag];
        let (generation, mut spans) = (*generation, Vec::<(i64, i64)>::new());
        for _ in 0..count {
            let Ok(drawn) = segment.draw(0) else { break };
            match spans.last_mut() {
                Some((_, last)) if *last + 1 == drawn.number => *last = drawn.number,
                _ => spans.push((drawn.number, drawn.number)),
            }
        }
        for (first, last) in spans {
            self.note(tag, generation, first, last);
        }
    }

    fn note(&mut self, tag: usize, generation: u64, first: i64, last: i64) {
        // The serials of a period are the same whichever generation of its tag has the number.
        let generation = if self.is_period(tag) { 0 } else { generation };
        let below = self.ledger.range((tag, generation, i64::MIN)..=(tag, generation, last)).next_back();
        if let Some((_, end)) = below
            && *end >= first
        {
            self.fail(TagFailure::Duplicate { number: first });
        }
        self.ledger.insert((tag, generation, first), last);
        self.drawn += (last - first + 1).unsigned_abs();
    }

    /// Returns the nonce and the length of the block that a server asks for. `fresh` is the nonce of a new request.
    pub fn request(&mut self, server: usize, tag: usize, fresh: Uuid) -> (Uuid, i64) {
        let slot = &mut self.servers[server].slots[tag];
        let fresh = faults::nonce(self.setup.fault, slot, fresh);
        let Ok((nonce, length)) = slot.refill.request(slot.lasted(self.time), || Ok::<_, Infallible>(fresh));
        (nonce, i64::try_from(length).unwrap_or(i64::MAX))
    }

    /// A server hears an answer.
    pub fn hear(&mut self, server: usize, tag: usize, nonce: Uuid, answer: &Result<TagBlock, NoBlock>) {
        if self.servers[server].cut {
            return;
        }
        let nonce = if self.setup.fault == TagFault::AnyAnswer { self.request(server, tag, nonce).0 } else { nonce };
        let (step, max_step) = (self.setup.step.unsigned_abs(), self.setup.max_step.unsigned_abs());
        let answer = match *answer {
            Ok(TagBlock { generation, first, count, .. }) => {
                TakeAnswer::Taken(Taken { generation, first, count: count.unsigned_abs(), step, max_step })
            }
            Err(NoBlock::UnknownTag) => TakeAnswer::Refused(Reason::Unknown, 0),
            Err(NoBlock::Wait { until }) => TakeAnswer::Refused(Reason::Wait, until),
            Err(NoBlock::Exhausted) => TakeAnswer::Refused(Reason::Exhausted, 0),
        };
        let (creates, time) = (self.is_period(tag), self.time);
        let slot = &mut self.servers[server].slots[tag];
        let arrival = Arrival {
            now: nanos(time),
            wall: time,
            empty: slot.segment.is_closed() && !slot.leaving,
            creates,
            generation: if self.setup.fault == TagFault::AnyGeneration { 0 } else { slot.generation },
            lasted: slot.lasted(time),
            ..Arrival::default()
        };
        match slot.refill.answer(nonce, answer, &arrival) {
            Decision::Ignored => {}
            Decision::Create => self.wire.push(Message::Begin),
            Decision::Refuse(refusal) if refusal.closes => slot.segment.close(),
            Decision::Refuse(_) => {}
            Decision::Install(fetched) => {
                let opens = !slot.leaving && (fetched.replaces || arrival.empty);
                if opens {
                    slot.segment.close();
                    slot.segment.open(0, fetched.block);
                }
                if opens || slot.segment.put(fetched.block) {
                    slot.refill.installed(&fetched);
                    let Rest { generation, last, .. } = fetched.rest;
                    slot.highest = if slot.generation == generation { slot.highest.max(last) } else { last };
                    (slot.generation, slot.fetched) = (generation, Some(time));
                } else {
                    self.wire.push(Message::GiveBack { tag, rest: fetched.rest });
                }
            }
        }
    }

    /// Closes a segment, and sends the numbers that are left back. While an answer is on its way, the segment is only closed.
    pub fn close(&mut self, server: usize, tag: usize) {
        let awaited = self.wire.iter().any(|message| message.asks(server, tag));
        let slot = &mut self.servers[server].slots[tag];
        let (open, used) = (!slot.segment.is_closed(), self.setup.fault == TagFault::UsedAfter);
        if !used {
            slot.segment.close();
        }
        if open && awaited && !used {
            slot.leaving = true;
            return;
        }
        if open || slot.leaving {
            let rests = slot.refill.rests(slot.segment.left());
            self.wire.extend(rests.map(|rest| Message::GiveBack { tag, rest }));
        }
        if !used {
            *slot = TagSlot::default();
        }
    }

    /// Another host runs the registry, with one of the states of the last `age` microseconds, or with the current one.
    pub fn fail_over(&mut self, age: Option<i64>, pick: usize, skipped: u32, new_system: bool) {
        let begin = self.history.partition_point(|(time, _)| *time < self.time - age.unwrap_or(0));
        let begin = begin.min(self.history.len().saturating_sub(1));
        let chosen = age.filter(|_| !self.history.is_empty()).map(|_| begin + pick % (self.history.len() - begin));
        let kept = chosen.map_or(self.state.source, |chosen| self.history[chosen].1.source);
        if new_system {
            if kept.system != self.newest.system || self.newest.timeline - kept.timeline >= UNKNOWN_STEPS {
                return;
            }
            self.newest = Source { system: self.newest.system + 1, timeline: 1, tables: 1 };
        } else {
            self.newest.timeline += 1 + skipped;
        }
        self.source = self.newest;
        if let Some(chosen) = chosen {
            self.lost |= self.history[chosen].1 != self.state;
            self.state = self.history[chosen].1.clone();
            self.history.truncate(chosen + 1);
        }
        if new_system {
            self.history.clear();
        }
    }

    /// The administrator says that nothing was lost, if this is true.
    pub fn open(&mut self) {
        if self.lost || (self.lost_in_quarantine && self.within()) {
            return;
        }
        self.called();
        if self.within() {
            faults::open(self.setup.fault, &mut self.state.tags);
            self.state.quarantine_until = 0;
        }
    }

    /// Everything works again. Each tag must give a block after at most two windows, unless it has given its last number.
    pub fn heal(&mut self) {
        for server in 0..self.servers.len() {
            self.servers[server].cut = false;
            self.beat(server);
        }
        self.time += 2 * GAP;
        self.begin();
        for (tag, name) in TAGS.iter().enumerate() {
            let nonce = self.nonce();
            match self.ask(tag, nonce, 1) {
                Ok(block) => self.note(tag, block.generation, block.first, block.first + block.count - 1),
                Err(NoBlock::Exhausted) if self.setup.start > 1 => {}
                Err(NoBlock::UnknownTag) => assert!(!self.state.tags.segments.contains_key(*name)),
                Err(other) => self.fail(TagFailure::Stuck(other)),
            }
        }
        for server in 0..self.servers.len() {
            (0..TAGS.len()).for_each(|tag| self.draw(server, tag, i64::MAX));
        }
    }
}
