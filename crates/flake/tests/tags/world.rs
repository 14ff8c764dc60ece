//! A world: the registry's segments with the hosts that run the registry one after the other, servers, and messages on their way.

use std::collections::{BTreeMap, VecDeque};

use flake::fleet::{Begun, Block, FAR, MARGIN, NoBlock, Report, Source, Tags, UNKNOWN_STEPS, Uuid};

use crate::faults::{self, Fault};
use crate::random::Random;

pub const GAP: i64 = MARGIN.as_micros() as i64;
pub const LONG: i64 = FAR.as_micros() as i64;
const BEGIN: i64 = 1_700_000_000_000_000;
pub const TAGS: [&str; 2] = ["a", "b"];
/// The tag of a period, in worlds that have one.
pub const PERIOD: usize = 1;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A number was drawn twice.
    Duplicate { number: i64 },
    /// A block in use is above everything that the registry takes to be lost.
    Ahead { last: i64 },
    /// A tag gives no block although everything works again.
    Stuck(NoBlock),
}

impl Failure {
    pub fn kind(&self) -> &'static str {
        match self {
            Failure::Duplicate { .. } => "duplicate",
            Failure::Ahead { .. } => "ahead",
            Failure::Stuck(_) => "stuck",
        }
    }
}

/// What one host of the registry has stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    pub tags: Tags,
    pub source: Source,
    /// The latest heartbeat, or when the life began.
    pub seen: i64,
    pub quarantine_until: i64,
}

/// A block, or what is left of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mine {
    pub generation: u64,
    pub nonce: Uuid,
    pub next: i64,
    pub last: i64,
}

#[derive(Clone, Debug, Default)]
pub struct Server {
    /// The blocks of each tag, the older one first.
    pub blocks: [VecDeque<Mine>; 2],
    /// The nonce of the block of each tag that the server waits for.
    pub waiting: [Option<Uuid>; 2],
    pub cut: bool,
}

#[derive(Clone, Copy, Debug)]
pub enum Message {
    Take { server: usize, tag: usize, nonce: Uuid, want: i64 },
    Taken { server: usize, tag: usize, answer: Result<Block, NoBlock>, nonce: Uuid },
    Begin,
    GiveBack { tag: usize, mine: Mine },
    Report { tag: usize, generation: u64, last: i64 },
}

#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub fault: Fault,
    pub servers: usize,
    pub step: i64,
    pub max_step: i64,
    pub start: i64,
    /// When the period of the tag [`PERIOD`] begins, after the world does. Without it, administrators create both tags.
    pub period: Option<i64>,
    /// Whether a block that is ahead of the registry is a failure before any number is drawn twice.
    pub strict: bool,
}

pub struct World {
    pub setup: Setup,
    pub time: i64,
    /// How far the registry's clock is ahead, from 0 to [`GAP`].
    pub ahead: i64,
    pub state: State,
    pub source: Source,
    pub newest: Source,
    pub history: Vec<(i64, State)>,
    pub lost: bool,
    pub lost_in_quarantine: bool,
    pub servers: Vec<Server>,
    pub wire: Vec<Message>,
    nonces: Random,
    /// The numbers that were drawn, by tag, generation and first number.
    ledger: BTreeMap<(usize, u64, i64), i64>,
    pub drawn: u64,
    pub failure: Option<Failure>,
}

impl World {
    pub fn new(setup: Setup) -> World {
        let source = Source { system: 1, timeline: 1, tables: 1 };
        let time = BEGIN;
        let tags = Tags { life: 1, ..Tags::default() };
        let mut world = World {
            setup,
            time,
            ahead: 0,
            state: State { tags, source, seen: time, quarantine_until: 0 },
            source,
            newest: source,
            history: Vec::new(),
            lost: false,
            lost_in_quarantine: false,
            servers: vec![Server::default(); setup.servers],
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
        let sizes = (self.setup.step, self.setup.max_step);
        faults::create(self.setup.fault, &mut self.state.tags, now, TAGS[tag], self.setup.start, sizes, fresh);
    }

    fn is_period(&self, tag: usize) -> bool {
        tag == PERIOD && self.setup.period.is_some()
    }

    /// A server asks for the tag of the period.
    pub fn begin(&mut self) {
        let Some(begins) = self.setup.period.map(|after| BEGIN + after) else { return };
        self.called();
        let (fresh, now) = (self.nonce(), self.now());
        let sizes = (self.setup.step, self.setup.max_step);
        let tags = &mut self.state.tags;
        if faults::begin(self.setup.fault, tags, now, TAGS[PERIOD], begins, self.setup.start, sizes, fresh)
            == Begun::Early
        {
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

    pub fn ask(&mut self, tag: usize, nonce: Uuid, want: i64) -> Result<Block, NoBlock> {
        self.called();
        let now = self.now();
        faults::take(self.setup.fault, &mut self.state.tags, now, TAGS[tag], nonce, want)
    }

    pub fn give_back(&mut self, tag: usize, mine: &Mine) {
        self.called();
        let fresh = self.nonce();
        let _ = faults::give_back(self.setup.fault, &mut self.state.tags, TAGS[tag], mine, fresh);
    }

    pub fn report(&mut self, tag: usize, generation: u64, last: i64) -> Report {
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
            let Some(mine) = self.servers[server].blocks[tag].back().copied() else { continue };
            let tags = &self.state.tags;
            if let Some(segment) = tags.segments.get(*name).filter(|segment| segment.generation == mine.generation)
                && self.setup.strict
                && i128::from(mine.last) >= i128::from(segment.next) + tags.pending(segment)
            {
                self.fail(Failure::Ahead { last: mine.last });
            }
            match self.report(tag, mine.generation, mine.last) {
                Report::Current | Report::Raised | Report::Ahead => {}
                Report::UnknownTag | Report::Generation => self.servers[server].blocks[tag].clear(),
            }
        }
    }

    pub fn fail(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
    }

    /// Draws numbers of a tag from the blocks of a server.
    pub fn draw(&mut self, server: usize, tag: usize, mut count: i64) {
        while let Some(mine) = self.servers[server].blocks[tag].front_mut()
            && count > 0
        {
            let (first, generation) = (mine.next, mine.generation);
            let last = mine.last.min(first.saturating_add(count - 1));
            mine.next = last + 1;
            if last == mine.last {
                self.servers[server].blocks[tag].pop_front();
            }
            count -= last - first + 1;
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
            self.fail(Failure::Duplicate { number: first });
        }
        self.ledger.insert((tag, generation, first), last);
        self.drawn += (last - first + 1).unsigned_abs();
    }

    /// A server hears an answer.
    pub fn hear(&mut self, server: usize, tag: usize, nonce: Uuid, answer: &Result<Block, NoBlock>) {
        let any = self.setup.fault == Fault::AnyAnswer;
        let server = &mut self.servers[server];
        if server.cut || (server.waiting[tag] != Some(nonce) && !any) {
            return;
        }
        server.waiting[tag] = None;
        match *answer {
            Ok(Block { generation, nonce, first, count }) => {
                let blocks = &mut server.blocks[tag];
                blocks.retain(|mine| mine.generation == generation);
                blocks.push_back(Mine { generation, nonce, next: first, last: first + count - 1 });
            }
            Err(NoBlock::UnknownTag) => {
                server.blocks[tag].clear();
                if self.is_period(tag) {
                    self.wire.push(Message::Begin);
                }
            }
            Err(_) => {}
        }
    }

    /// Sends the numbers that are left of a tag back, the newer block first. The server no longer has them.
    pub fn close(&mut self, server: usize, tag: usize) {
        self.servers[server].waiting[tag] = None;
        let blocks = self.servers[server].blocks[tag].clone();
        if self.setup.fault != Fault::UsedAfter {
            self.servers[server].blocks[tag].clear();
        }
        for mine in blocks.into_iter().rev() {
            self.wire.push(Message::GiveBack { tag, mine });
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
                Err(other) => self.fail(Failure::Stuck(other)),
            }
        }
        for server in 0..self.servers.len() {
            (0..TAGS.len()).for_each(|tag| self.draw(server, tag, i64::MAX));
        }
    }
}
