//! What happens in a world: actions that are chosen at random, and that a trace replays.

use flake::fleet::NoBlock;
use flake::segment_refill::Refill;

use crate::random::Random;
use crate::world::{GAP, LONG, Message, TAGS, TagServer, TagWorld, nanos};
use crate::worlds::weighted;

/// What happens. The two numbers of a [`TagAction`] select among the possibilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagEvent {
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
pub struct TagAction(pub TagEvent, pub usize, pub usize);

type TagEvents = crate::worlds::Weighted<TagEvent>;

const ALWAYS: TagEvents = &[
    (2, &[TagEvent::Pass]),
    (4, &[TagEvent::Ask]),
    (1, &[TagEvent::Forget]),
    (6, &[TagEvent::Deliver]),
    (1, &[TagEvent::Double, TagEvent::Drop]),
    (2, &[TagEvent::Burst, TagEvent::Draw]),
    (1, &[TagEvent::Beat, TagEvent::BeatAll, TagEvent::Report]),
    (2, &[TagEvent::Close]),
    (1, &[TagEvent::Crash, TagEvent::Cut, TagEvent::Join]),
];
const FAILOVERS: TagEvents =
    &[(2, &[TagEvent::FailOver]), (1, &[TagEvent::FailOverLong, TagEvent::Clock]), (2, &[TagEvent::Burst])];
const BACKUPS: TagEvents = &[(1, &[TagEvent::FailOverLong, TagEvent::Restore, TagEvent::Clock, TagEvent::Burst])];
const OPENS: TagEvents = &[(1, &[TagEvent::FailOver]), (2, &[TagEvent::FailOverLossless, TagEvent::Open])];
const CHANGES: TagEvents = &[(1, &[TagEvent::DropTag]), (2, &[TagEvent::CreateTag])];

/// The kinds of worlds.
pub const WORLDS: &[(&str, &[TagEvents])] = &[
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
pub fn trace(random: &mut Random, kind: &[TagEvents]) -> Vec<TagAction> {
    let kinds = weighted(ALWAYS, kind);
    let count = 20 + random.below(60);
    (0..count).map(|_| TagAction(random.pick(&kinds), random.below(1 << 12), random.below(1 << 12))).collect()
}

const STEPS: [i64; 9] = [1_000, 1_000_000, GAP / 2, GAP - 1_000, GAP, GAP + 1_000, 2 * GAP, 3 * GAP, LONG];

impl TagWorld {
    pub fn act(&mut self, action: TagAction) {
        let TagAction(kind, a, b) = action;
        let (server, tag) = (a % self.servers.len(), (a / 16) % TAGS.len());
        match kind {
            TagEvent::Pass => self.time += STEPS[a % STEPS.len()] + (b % 50) as i64,
            TagEvent::Ask => {
                let fresh = self.nonce();
                let slot = &self.servers[server].slots[tag];
                if slot.needs() && slot.refill.is_due(nanos(self.time)) {
                    let (nonce, want) = self.request(server, tag, fresh);
                    self.wire.push(Message::Take { server, tag, nonce, want });
                }
            }
            // The registrar crashes, and goes on with the segments in shared memory.
            TagEvent::Forget => self.servers[server].slots[tag].refill = Refill::default(),
            TagEvent::Deliver => self.deliver(a, false),
            TagEvent::Double => self.deliver(a, true),
            TagEvent::Drop if !self.wire.is_empty() => {
                self.wire.remove(a % self.wire.len());
            }
            TagEvent::Drop => {}
            // Many blocks at once, up to the end of the window.
            TagEvent::Burst => {
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
            TagEvent::Draw => self.draw(server, tag, 1 + (b % 30) as i64),
            TagEvent::Beat => self.beat(server),
            TagEvent::BeatAll => (0..self.servers.len()).for_each(|server| self.beat(server)),
            TagEvent::Report => {
                let slot = &self.servers[server].slots[tag];
                if !slot.segment.is_closed() {
                    let (generation, last) = (slot.generation, slot.highest);
                    self.wire.push(Message::Report { tag, generation, last });
                }
            }
            TagEvent::Close => self.close(server, tag),
            TagEvent::Crash => {
                let cut = self.servers[server].cut;
                self.servers[server] = TagServer { cut, ..TagServer::default() };
            }
            TagEvent::Cut => self.servers[server].cut = true,
            TagEvent::Join => self.servers[server].cut = false,
            TagEvent::DropTag => self.drop_tag(tag),
            TagEvent::CreateTag => self.create(tag),
            TagEvent::FailOver => self.fail_over(Some(STEPS[b % 5]), a, 0, false),
            TagEvent::FailOverLong => self.fail_over(Some(STEPS[b % STEPS.len()]), a, (b % 3) as u32, false),
            TagEvent::FailOverLossless => self.fail_over(None, a, 0, false),
            TagEvent::Restore => self.fail_over(Some(STEPS[b % STEPS.len()]), a, 0, true),
            TagEvent::Clock => self.ahead = [0, GAP, GAP / 2, 1_000][a % 4],
            TagEvent::Open => self.open(),
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
