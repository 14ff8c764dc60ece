//! What happens in a world: actions that are chosen at random, and that a trace replays.

use std::time::Duration;

use flake::fleet::MARGIN;

use crate::earlier;
use crate::random::Random;
use crate::server::IdChoice;
use crate::world::{FleetWorld, GAP, HOUR, LONG, MINUTE, Packet, SECOND};
use crate::worlds::weighted;

/// What happens. The two numbers of a [`FleetAction`] select among the possibilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FleetEvent {
    Pass,
    PassTo,
    Quiet,
    Up,
    Beat,
    BeatAll,
    Send,
    Deliver,
    Double,
    Drop,
    Start,
    Stop,
    Issue,
    Registrar,
    Reboot,
    CloneDisk,
    CloneMemory,
    Backup,
    RestoreInPlace,
    RestoreElsewhere,
    Move,
    Promote,
    Clock,
    TrueClock,
    Cut,
    Join,
    Lease,
    FailOver,
    FailOverLong,
    FailOverLossless,
    Burst,
    /// A few seconds pass.
    Nudge,
    /// A failover that loses at most the last minute.
    Swap,
    Downgrade,
    Upgrade,
    RestoreRegistry,
    RebuildRegistry,
    /// The registry's rows come from a dump.
    RestoreTables,
    RegistryClock,
    /// A role that may call the functions sends a call of its own.
    Forge,
    Open,
    ChangeLayout,
    Configure,
    /// The owner of the registry reserves a worker ID.
    Reserve,
    Release,
}

/// One step of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FleetAction(pub FleetEvent, pub usize, pub usize);

type FleetEvents = crate::worlds::Weighted<FleetEvent>;

/// What happens in every world.
const ALWAYS: FleetEvents = &[
    (2, &[FleetEvent::Pass]),
    (3, &[FleetEvent::PassTo]),
    (2, &[FleetEvent::Quiet]),
    (5, &[FleetEvent::Up]),
    (3, &[FleetEvent::Beat]),
    (2, &[FleetEvent::BeatAll]),
    (3, &[FleetEvent::Send]),
    (4, &[FleetEvent::Deliver]),
    (1, &[FleetEvent::Drop, FleetEvent::Start, FleetEvent::Stop]),
    (4, &[FleetEvent::Issue]),
];

const MACHINES: FleetEvents = &[
    (1, &[FleetEvent::Reboot, FleetEvent::CloneDisk, FleetEvent::Backup, FleetEvent::RestoreInPlace]),
    (1, &[FleetEvent::RestoreElsewhere, FleetEvent::Move, FleetEvent::Promote, FleetEvent::Registrar]),
    (2, &[FleetEvent::Double]),
    (1, &[FleetEvent::Cut, FleetEvent::Join]),
];
const CLOCKS: FleetEvents =
    &[(2, &[FleetEvent::Clock]), (1, &[FleetEvent::TrueClock, FleetEvent::Reboot, FleetEvent::Cut, FleetEvent::Join])];
const FAILOVERS: FleetEvents = &[
    (2, &[FleetEvent::FailOver]),
    (1, &[FleetEvent::FailOverLong]),
    (2, &[FleetEvent::Cut, FleetEvent::Join, FleetEvent::RegistryClock]),
    (1, &[FleetEvent::Reboot, FleetEvent::Clock]),
];
const BURSTS: FleetEvents = &[
    (4, &[FleetEvent::Burst]),
    (1, &[FleetEvent::FailOver, FleetEvent::FailOverLong]),
    (2, &[FleetEvent::Cut]),
    (1, &[FleetEvent::Join, FleetEvent::RegistryClock, FleetEvent::Reboot, FleetEvent::Clock, FleetEvent::TrueClock]),
];
/// Clocks and failovers at the ends of quarantines.
const EDGES: FleetEvents = &[
    (3, &[FleetEvent::PassTo]),
    (4, &[FleetEvent::RegistryClock]),
    (3, &[FleetEvent::Nudge]),
    (4, &[FleetEvent::Swap]),
    (2, &[FleetEvent::Cut]),
    (1, &[FleetEvent::Join, FleetEvent::Reboot]),
    (3, &[FleetEvent::Up]),
    (1, &[FleetEvent::Beat, FleetEvent::Clock]),
];
const UPGRADES: FleetEvents = &[
    (1, &[FleetEvent::Upgrade, FleetEvent::Burst, FleetEvent::FailOver]),
    (2, &[FleetEvent::Cut]),
    (1, &[FleetEvent::Join, FleetEvent::Reboot]),
];
const DUMPS: FleetEvents = &[
    (2, &[FleetEvent::RestoreTables]),
    (1, &[FleetEvent::Burst]),
    (2, &[FleetEvent::Cut]),
    (1, &[FleetEvent::Join, FleetEvent::Reboot]),
];
const REGISTRY_CLOCKS: FleetEvents = &[(3, &[FleetEvent::RegistryClock])];
const FORGERIES: FleetEvents = &[(12, &[FleetEvent::Forge])];
const BACKUPS: FleetEvents = &[
    (1, &[FleetEvent::FailOverLong, FleetEvent::RestoreRegistry, FleetEvent::RebuildRegistry, FleetEvent::Cut]),
    (1, &[FleetEvent::Join, FleetEvent::RegistryClock, FleetEvent::Reboot, FleetEvent::Clock, FleetEvent::TrueClock]),
];
const OPENS: FleetEvents = &[
    (1, &[FleetEvent::FailOver]),
    (2, &[FleetEvent::FailOverLossless, FleetEvent::Open]),
    (1, &[FleetEvent::Reboot, FleetEvent::Clock, FleetEvent::Cut, FleetEvent::Join]),
];
const LAYOUTS: FleetEvents = &[
    (1, &[FleetEvent::ChangeLayout]),
    (2, &[FleetEvent::Configure]),
    (1, &[FleetEvent::FailOver, FleetEvent::Cut, FleetEvent::Join]),
    (1, &[FleetEvent::Reboot, FleetEvent::Clock, FleetEvent::Lease]),
];
const COPIES: FleetEvents = &[
    (2, &[FleetEvent::CloneMemory]),
    (1, &[FleetEvent::Send, FleetEvent::Double, FleetEvent::Cut, FleetEvent::Join, FleetEvent::FailOver]),
];
const RESERVATIONS: FleetEvents = &[(4, &[FleetEvent::Reserve]), (1, &[FleetEvent::Release])];

/// The kinds of worlds.
pub const WORLDS: &[(&str, &[FleetEvents])] = &[
    ("undisturbed", &[]),
    ("machines", &[MACHINES]),
    ("clocks", &[CLOCKS]),
    ("failovers", &[FAILOVERS]),
    ("failovers in a row", &[FAILOVERS, FAILOVERS, FAILOVERS]),
    ("bursts", &[BURSTS]),
    ("bursts and backups", &[BURSTS, BURSTS, BACKUPS]),
    ("edges", &[EDGES]),
    ("upgrades", &[UPGRADES, BURSTS]),
    ("upgrades and backups", &[UPGRADES, BURSTS, BACKUPS]),
    ("bursts and everything", &[BURSTS, BURSTS, MACHINES, CLOCKS, BACKUPS, OPENS, LAYOUTS]),
    ("dumps", &[DUMPS]),
    ("dumps and backups", &[DUMPS, BURSTS, BACKUPS]),
    ("forged calls", &[FORGERIES]),
    ("forged calls and clocks", &[FORGERIES, FORGERIES, CLOCKS, MACHINES, REGISTRY_CLOCKS]),
    ("forged calls and failovers", &[FORGERIES, FAILOVERS]),
    ("forged calls and bursts", &[FORGERIES, BURSTS, CLOCKS]),
    ("forged calls and edges", &[FORGERIES, EDGES]),
    ("backups", &[BACKUPS]),
    ("opened", &[OPENS]),
    ("layouts", &[LAYOUTS]),
    ("reservations", &[RESERVATIONS, FAILOVERS]),
    ("reservations and bursts", &[RESERVATIONS, BURSTS, MACHINES]),
    ("copied memories", &[COPIES]),
    ("everything", &[MACHINES, CLOCKS, FAILOVERS, BACKUPS, OPENS, LAYOUTS]),
    ("everything and copied memories", &[MACHINES, CLOCKS, FAILOVERS, BACKUPS, OPENS, LAYOUTS, COPIES]),
];

/// Returns a random trace for worlds of this kind.
pub fn trace(random: &mut Random, kind: &[FleetEvents]) -> Vec<FleetAction> {
    let mut trace = Vec::new();
    if kind.contains(&UPGRADES) {
        // The ring of the version before has more worker IDs.
        trace.push(FleetAction(FleetEvent::Downgrade, random.pick(&[0, 3, 5, 6, 12, 24, 48]), 0));
    }
    if random.below(2) == 0 {
        trace.extend([
            FleetAction(FleetEvent::Up, 0, 0),
            FleetAction(FleetEvent::Up, 1, 0),
            FleetAction(FleetEvent::Quiet, 2, 0),
        ]);
    }
    let kinds = weighted(ALWAYS, kind);
    for _ in 0..20 + random.below(50) {
        trace.push(FleetAction(random.pick(&kinds), random.below(1 << 12), random.below(1 << 12)));
    }
    trace
}

const STEPS: [i64; 9] = [SECOND, MINUTE, GAP / 2, GAP, 2 * GAP, HOUR, 6 * HOUR, 12 * HOUR, LONG];
const CLOCKS_AHEAD: [i64; 12] = [
    -30 * HOUR,
    -13 * HOUR,
    -6 * HOUR,
    -2 * GAP,
    -GAP,
    -SECOND,
    SECOND,
    GAP,
    2 * GAP,
    13 * HOUR,
    30 * HOUR,
    75 * 8_766 * HOUR,
];

impl FleetWorld {
    pub fn act(&mut self, action: FleetAction) {
        let FleetAction(kind, a, b) = action;
        let server = a % self.servers.len();
        let other = b % self.servers.len();
        match kind {
            FleetEvent::Pass => self.time += STEPS[a % STEPS.len()],
            FleetEvent::PassTo => self.pass_to(a, [-SECOND, 0, SECOND, 2 * SECOND][b % 4]),
            FleetEvent::Quiet => {
                let step = [20 * MINUTE, 20 * MINUTE, 5 * HOUR][b % 3];
                for _ in 0..1 + a % 6 {
                    self.time += step;
                    self.beat_all();
                }
            }
            FleetEvent::Up => self.up(server),
            FleetEvent::Beat => self.beat(server),
            FleetEvent::BeatAll => self.beat_all(),
            FleetEvent::Send => {
                if let Some(call) = self.send(server) {
                    let process = self.servers[server].process.as_ref().map_or(0, |process| process.number);
                    self.wire.push(Packet { server, process, call, answer: None });
                }
            }
            FleetEvent::Deliver => self.deliver(a, false),
            FleetEvent::Double => self.deliver(a, true),
            FleetEvent::Drop if !self.wire.is_empty() => {
                self.wire.remove(a % self.wire.len());
            }
            FleetEvent::Drop => {}
            FleetEvent::Issue => {
                self.issue(server, [IdChoice::Clock, IdChoice::Clock, IdChoice::Lowest, IdChoice::Highest][b % 4]);
            }
            FleetEvent::FailOver => self.fail_over(Some([0, SECOND, GAP, HOUR][b % 4]), a, 0, false),
            FleetEvent::FailOverLong => self.fail_over(Some([6 * HOUR, LONG, 3 * LONG, 10 * LONG][b % 4]), a, 0, false),
            FleetEvent::FailOverLossless => self.fail_over(None, 0, 0, false),
            FleetEvent::Burst => self.burst(a, b),
            FleetEvent::Nudge => self.time += [SECOND, SECOND, 2 * SECOND, MINUTE][b % 4],
            FleetEvent::Swap => {
                self.fail_over([None, Some(SECOND), Some(2 * SECOND), Some(MINUTE)][b % 4], a, 0, false);
            }
            FleetEvent::Downgrade => earlier::downgrade(&mut self.registry, a as u32),
            FleetEvent::Upgrade => self.upgrade(),
            FleetEvent::RestoreRegistry => {
                self.fail_over(Some([0, HOUR, LONG, 3 * LONG][b % 4]), a, (b / 4 % 3) as u32, false);
            }
            FleetEvent::RebuildRegistry => self.fail_over(Some([0, HOUR, LONG, 3 * LONG][b % 4]), a, 0, true),
            FleetEvent::RestoreTables => {
                if b % 3 == 0 {
                    self.fail_over(None, 0, (b / 3 % 2) as u32, false);
                }
                self.restore_tables([0, MINUTE, HOUR, LONG][b / 8 % 4], a);
            }
            FleetEvent::Forge => self.forge(a, b),
            FleetEvent::RegistryClock => self.ahead = [0, GAP / 2, GAP][a % 3],
            FleetEvent::Open => self.open(),
            FleetEvent::ChangeLayout => self.change_layout(),
            FleetEvent::Reserve => self.reserve(a),
            FleetEvent::Release => self.release(a),
            _ => self.act_on(kind, server, other, b),
        }
    }

    /// Several failovers of the registry in a row, each with a machine that is restarted, as in a cluster that contains its registry.
    /// A failover loses nothing, a part of the last state, or the last states. Some servers are cut off afterwards.
    fn burst(&mut self, a: usize, b: usize) {
        let mut random = Random((a << 12 | b) as u64);
        for _ in 0..1 + random.below(8) {
            let age = random.pick(&[0, SECOND, MINUTE, GAP, HOUR, 3 * HOUR]);
            let skipped = random.pick(&[0, 0, 0, 0, 0, 1, 2]);
            match random.below(6) {
                0 => {}
                1 => self.fail_over(None, 0, 0, false),
                _ => self.fail_over(Some(age), random.below(1 << 12), skipped, false),
            }
            for _ in 0..1 + random.below(2) {
                let (server, other) = (random.below(self.servers.len()), random.below(self.servers.len()));
                let mark = self.servers[other].mark;
                let crashed = &mut self.servers[server];
                crashed.reboot();
                crashed.cut = false;
                if random.below(3) == 0 {
                    crashed.mark = mark;
                }
                self.start(server);
                self.beat(server);
                if random.below(2) == 0 {
                    self.beat(server);
                }
                self.servers[server].cut = random.below(3) == 0;
            }
            self.time += random.pick(&[0, SECOND, MINUTE, GAP, 2 * GAP, HOUR, 2 * HOUR, 13 * HOUR]);
            match random.below(3) {
                0 => self.beat_all(),
                1 => self.beat(random.below(self.servers.len())),
                _ => {}
            }
            if random.below(4) == 0 {
                self.ahead = random.pick(&[0, GAP / 2, GAP]);
            }
        }
    }

    /// What happens to one server.
    fn act_on(&mut self, kind: FleetEvent, server: usize, other: usize, b: usize) {
        let (time, fault) = (self.time, self.fault);
        let places = self.servers.len() < self.places;
        let stopped = self.servers[server].process.is_none();
        let number = self.new_number();
        let format = self.registry.fleet.format;
        let (other_mark, other_stopped) = (self.servers[other].mark, self.servers[other].process.is_none());
        let of = &mut self.servers[server];
        match kind {
            FleetEvent::Start => of.start(time, number, fault),
            FleetEvent::Stop => of.process = None,
            FleetEvent::Registrar => of.restart_registrar(time, number),
            FleetEvent::Reboot => of.reboot(),
            FleetEvent::CloneDisk if places => self.clone_disk(server),
            FleetEvent::CloneMemory if places && !stopped => self.clone_memory(server),
            FleetEvent::Backup => of.backup = Some(of.mark),
            FleetEvent::RestoreInPlace => of.restore(),
            FleetEvent::RestoreElsewhere => {
                of.restore();
                of.disk = number;
            }
            FleetEvent::Promote => {
                of.process = None;
                of.mark = other_mark;
            }
            FleetEvent::Move if stopped && other != server && other_stopped => {
                let (low, high) = (server.min(other), server.max(other));
                let (first, second) = self.servers.split_at_mut(high);
                std::mem::swap(&mut first[low].disk, &mut second[0].disk);
                std::mem::swap(&mut first[low].mark, &mut second[0].mark);
            }
            FleetEvent::Clock => of.ahead = CLOCKS_AHEAD[b % CLOCKS_AHEAD.len()],
            FleetEvent::TrueClock => of.ahead = 0,
            FleetEvent::Cut => of.cut = true,
            FleetEvent::Join => of.cut = false,
            FleetEvent::Lease => {
                of.process = None;
                of.lease = [MARGIN, Duration::from_hours(1), Duration::from_hours(12), Duration::from_hours(24)][b % 4];
            }
            FleetEvent::Configure => {
                of.process = None;
                of.format = format;
            }
            _ => {}
        }
    }
}
