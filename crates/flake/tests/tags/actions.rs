//! What happens in a world: actions that are chosen at random, and that a trace replays.

use flake::fleet::NoBlock;
use flake::refill::Refill;

use crate::random::Random;
use crate::world::{GAP, LONG, Message, Server, TAGS, World, nanos};
use crate::worlds::weighted;

/// What happens. The two numbers of an [`Action`] select among the possibilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Pass,
    Ask,
    Forget,
    Deliver,
    Double,
    Drop,
    Burst,
    Draw,
    Beat,
    BeatAll,
    Report,
    Close,
    Crash,
    Cut,
    Join,
    DropTag,
    CreateTag,
    FailOver,
    FailOverLong,
    FailOverLossless,
    Restore,
    Clock,
    Open,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action(pub Kind, pub usize, pub usize);

type Weighted = crate::worlds::Weighted<Kind>;

const ALWAYS: Weighted = &[
    (2, &[Kind::Pass]),
    (4, &[Kind::Ask]),
    (1, &[Kind::Forget]),
    (6, &[Kind::Deliver]),
    (1, &[Kind::Double, Kind::Drop]),
    (2, &[Kind::Burst, Kind::Draw]),
    (1, &[Kind::Beat, Kind::BeatAll, Kind::Report]),
    (2, &[Kind::Close]),
    (1, &[Kind::Crash, Kind::Cut, Kind::Join]),
];
const FAILOVERS: Weighted = &[(2, &[Kind::FailOver]), (1, &[Kind::FailOverLong, Kind::Clock]), (2, &[Kind::Burst])];
const BACKUPS: Weighted = &[(1, &[Kind::FailOverLong, Kind::Restore, Kind::Clock, Kind::Burst])];
const OPENS: Weighted = &[(1, &[Kind::FailOver]), (2, &[Kind::FailOverLossless, Kind::Open])];
const CHANGES: Weighted = &[(1, &[Kind::DropTag]), (2, &[Kind::CreateTag])];

/// The kinds of worlds.
pub const WORLDS: &[(&str, &[Weighted])] = &[
    ("undisturbed", &[]),
    ("changes", &[CHANGES, CHANGES]),
    ("failovers", &[FAILOVERS]),
    ("failovers in a row", &[FAILOVERS, FAILOVERS, FAILOVERS]),
    ("backups", &[BACKUPS, FAILOVERS]),
    ("opened", &[OPENS]),
    ("periods", &[FAILOVERS]),
    ("periods and backups", &[FAILOVERS, BACKUPS, OPENS]),
    ("everything", &[CHANGES, FAILOVERS, BACKUPS, OPENS]),
];

/// Returns when the period of a tag begins after the world does, in worlds of this kind that have a period.
pub fn period(random: &mut Random, name: &str) -> Option<i64> {
    name.starts_with("periods").then(|| random.pick(&[-LONG, -GAP, 0, GAP / 2, GAP, 2 * GAP, 3 * GAP, LONG]))
}

/// Returns a random trace for worlds of this kind.
pub fn trace(random: &mut Random, kind: &[Weighted]) -> Vec<Action> {
    let kinds = weighted(ALWAYS, kind);
    let count = 20 + random.below(60);
    (0..count).map(|_| Action(random.pick(&kinds), random.below(1 << 12), random.below(1 << 12))).collect()
}

const STEPS: [i64; 9] = [1_000, 1_000_000, GAP / 2, GAP - 1_000, GAP, GAP + 1_000, 2 * GAP, 3 * GAP, LONG];

impl World {
    pub fn act(&mut self, action: Action) {
        let Action(kind, a, b) = action;
        let (server, tag) = (a % self.servers.len(), (a / 16) % TAGS.len());
        match kind {
            Kind::Pass => self.time += STEPS[a % STEPS.len()] + (b % 50) as i64,
            Kind::Ask => {
                let fresh = self.nonce();
                let slot = &self.servers[server].slots[tag];
                if slot.needs() && slot.refill.is_due(nanos(self.time)) {
                    let (nonce, want) = self.request(server, tag, fresh);
                    self.wire.push(Message::Take { server, tag, nonce, want });
                }
            }
            // The registrar crashes, and goes on with the segments in shared memory.
            Kind::Forget => self.servers[server].slots[tag].refill = Refill::default(),
            Kind::Deliver => self.deliver(a, false),
            Kind::Double => self.deliver(a, true),
            Kind::Drop if !self.wire.is_empty() => {
                self.wire.remove(a % self.wire.len());
            }
            Kind::Drop => {}
            // Many blocks at once, up to the end of the window.
            Kind::Burst => {
                for _ in 0..1 + b % 70 {
                    let nonce = self.nonce();
                    let mut answer = self.ask(tag, nonce, i64::MAX);
                    if answer == Err(NoBlock::UnknownTag) {
                        self.begin();
                        answer = self.ask(tag, nonce, i64::MAX);
                    }
                    let Ok(block) = answer else { break };
                    if self.servers[server].slots[tag].needs() && self.request(server, tag, nonce).0 == nonce {
                        self.hear(server, tag, nonce, &Ok(block));
                        self.draw(server, tag, (b % 7) as i64 * self.setup.max_step / 4);
                    }
                }
            }
            Kind::Draw => self.draw(server, tag, 1 + (b % 30) as i64),
            Kind::Beat => self.beat(server),
            Kind::BeatAll => (0..self.servers.len()).for_each(|server| self.beat(server)),
            Kind::Report => {
                let slot = &self.servers[server].slots[tag];
                if !slot.segment.is_closed() {
                    let (generation, last) = (slot.generation, slot.highest);
                    self.wire.push(Message::Report { tag, generation, last });
                }
            }
            Kind::Close => self.close(server, tag),
            Kind::Crash => {
                let cut = self.servers[server].cut;
                self.servers[server] = Server { cut, ..Server::default() };
            }
            Kind::Cut => self.servers[server].cut = true,
            Kind::Join => self.servers[server].cut = false,
            Kind::DropTag => self.drop_tag(tag),
            Kind::CreateTag => self.create(tag),
            Kind::FailOver => self.fail_over(Some(STEPS[b % 5]), a, 0, false),
            Kind::FailOverLong => self.fail_over(Some(STEPS[b % STEPS.len()]), a, (b % 3) as u32, false),
            Kind::FailOverLossless => self.fail_over(None, a, 0, false),
            Kind::Restore => self.fail_over(Some(STEPS[b % STEPS.len()]), a, 0, true),
            Kind::Clock => self.ahead = [0, GAP, GAP / 2, 1_000][a % 4],
            Kind::Open => self.open(),
        }
    }

    /// Delivers a message. A request for a block becomes an answer, which is on its way then.
    fn deliver(&mut self, pick: usize, keep: bool) {
        if self.wire.is_empty() || (keep && self.wire.len() > 20) {
            return;
        }
        let at = pick % self.wire.len();
        let message = if keep { self.wire[at] } else { self.wire.remove(at) };
        match message {
            Message::Take { server, tag, nonce, want } => {
                let answer = self.ask(tag, nonce, want);
                self.wire.push(Message::Taken { server, tag, nonce, answer });
            }
            Message::Begin => self.begin(),
            Message::Taken { server, tag, nonce, answer } => self.hear(server, tag, nonce, &answer),
            Message::GiveBack { tag, rest } => self.give_back(tag, &rest),
            Message::Report { tag, generation, last } => {
                self.report(tag, generation, last);
            }
        }
    }
}
