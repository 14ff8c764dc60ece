//! What happens in a world: actions that are chosen at random, and that a trace replays.

use std::time::Duration;

use flake::Mark;
use flake::fleet::MARGIN;

use crate::earlier;
use crate::faults::Fault;
use crate::random::Random;
use crate::server::{At, Server};
use crate::world::{GAP, HOUR, LONG, MINUTE, Packet, SECOND, World};
use crate::worlds::weighted;

/// What happens. The two numbers of an [`Action`] select among the possibilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
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
pub struct Action(pub Kind, pub usize, pub usize);

type Weighted = crate::worlds::Weighted<Kind>;

/// What happens in every world.
const ALWAYS: Weighted = &[
    (2, &[Kind::Pass]),
    (3, &[Kind::PassTo]),
    (2, &[Kind::Quiet]),
    (5, &[Kind::Up]),
    (3, &[Kind::Beat]),
    (2, &[Kind::BeatAll]),
    (3, &[Kind::Send]),
    (4, &[Kind::Deliver]),
    (1, &[Kind::Drop, Kind::Start, Kind::Stop]),
    (4, &[Kind::Issue]),
];

const MACHINES: Weighted = &[
    (1, &[Kind::Reboot, Kind::CloneDisk, Kind::Backup, Kind::RestoreInPlace, Kind::RestoreElsewhere, Kind::Move]),
    (1, &[Kind::Promote, Kind::Registrar]),
    (2, &[Kind::Double]),
    (1, &[Kind::Cut, Kind::Join]),
];
const CLOCKS: Weighted = &[(2, &[Kind::Clock]), (1, &[Kind::TrueClock, Kind::Reboot, Kind::Cut, Kind::Join])];
const FAILOVERS: Weighted = &[
    (2, &[Kind::FailOver]),
    (1, &[Kind::FailOverLong]),
    (2, &[Kind::Cut, Kind::Join, Kind::RegistryClock]),
    (1, &[Kind::Reboot, Kind::Clock]),
];
const BURSTS: Weighted = &[
    (4, &[Kind::Burst]),
    (1, &[Kind::FailOver, Kind::FailOverLong]),
    (2, &[Kind::Cut]),
    (1, &[Kind::Join, Kind::RegistryClock, Kind::Reboot, Kind::Clock, Kind::TrueClock]),
];
/// Clocks and failovers at the ends of quarantines.
const EDGES: Weighted = &[
    (3, &[Kind::PassTo]),
    (4, &[Kind::RegistryClock]),
    (3, &[Kind::Nudge]),
    (4, &[Kind::Swap]),
    (2, &[Kind::Cut]),
    (1, &[Kind::Join, Kind::Reboot]),
    (3, &[Kind::Up]),
    (1, &[Kind::Beat, Kind::Clock]),
];
const UPGRADES: Weighted =
    &[(1, &[Kind::Upgrade, Kind::Burst, Kind::FailOver]), (2, &[Kind::Cut]), (1, &[Kind::Join, Kind::Reboot])];
const DUMPS: Weighted =
    &[(2, &[Kind::RestoreTables]), (1, &[Kind::Burst]), (2, &[Kind::Cut]), (1, &[Kind::Join, Kind::Reboot])];
const REGISTRY_CLOCKS: Weighted = &[(3, &[Kind::RegistryClock])];
const FORGERIES: Weighted = &[(12, &[Kind::Forge])];
const BACKUPS: Weighted = &[
    (1, &[Kind::FailOverLong, Kind::RestoreRegistry, Kind::RebuildRegistry, Kind::Cut, Kind::Join]),
    (1, &[Kind::RegistryClock, Kind::Reboot, Kind::Clock, Kind::TrueClock]),
];
const OPENS: Weighted = &[
    (1, &[Kind::FailOver]),
    (2, &[Kind::FailOverLossless, Kind::Open]),
    (1, &[Kind::Reboot, Kind::Clock, Kind::Cut, Kind::Join]),
];
const LAYOUTS: Weighted = &[
    (1, &[Kind::ChangeLayout]),
    (2, &[Kind::Configure]),
    (1, &[Kind::FailOver, Kind::Cut, Kind::Join, Kind::Reboot, Kind::Clock, Kind::Lease]),
];
const COPIES: Weighted =
    &[(2, &[Kind::CloneMemory]), (1, &[Kind::Send, Kind::Double, Kind::Cut, Kind::Join, Kind::FailOver])];
const RESERVATIONS: Weighted = &[(4, &[Kind::Reserve]), (1, &[Kind::Release])];

/// The kinds of worlds.
pub const WORLDS: &[(&str, &[Weighted])] = &[
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
pub fn trace(random: &mut Random, kind: &[Weighted]) -> Vec<Action> {
    let mut trace = Vec::new();
    if kind.contains(&UPGRADES) {
        // The ring of the version before has more worker IDs.
        trace.push(Action(Kind::Downgrade, random.pick(&[0, 3, 5, 6, 12, 24, 48]), 0));
    }
    if random.below(2) == 0 {
        trace.extend([Action(Kind::Up, 0, 0), Action(Kind::Up, 1, 0), Action(Kind::Quiet, 2, 0)]);
    }
    let kinds = weighted(ALWAYS, kind);
    for _ in 0..20 + random.below(50) {
        trace.push(Action(random.pick(&kinds), random.below(1 << 12), random.below(1 << 12)));
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

impl World {
    pub fn act(&mut self, action: Action) {
        let Action(kind, a, b) = action;
        let server = a % self.servers.len();
        let other = b % self.servers.len();
        match kind {
            Kind::Pass => self.time += STEPS[a % STEPS.len()],
            Kind::PassTo => self.pass_to(a, [-SECOND, 0, SECOND, 2 * SECOND][b % 4]),
            Kind::Quiet => {
                let step = [20 * MINUTE, 20 * MINUTE, 5 * HOUR][b % 3];
                for _ in 0..1 + a % 6 {
                    self.time += step;
                    self.beat_all();
                }
            }
            Kind::Up => {
                self.start(server);
                self.beat(server);
                self.beat(server);
            }
            Kind::Beat => self.beat(server),
            Kind::BeatAll => self.beat_all(),
            Kind::Send => {
                if let Some(call) = self.send(server) {
                    let process = self.servers[server].process.as_ref().map_or(0, |process| process.number);
                    self.wire.push(Packet { server, process, call, answer: None });
                }
            }
            Kind::Deliver => self.deliver(a, false),
            Kind::Double => self.deliver(a, true),
            Kind::Drop if !self.wire.is_empty() => {
                self.wire.remove(a % self.wire.len());
            }
            Kind::Drop => {}
            Kind::Issue => {
                self.issue(server, [At::Clock, At::Clock, At::Lowest, At::Highest][b % 4]);
            }
            Kind::FailOver => self.fail_over(Some([0, SECOND, GAP, HOUR][b % 4]), a, 0, false),
            Kind::FailOverLong => self.fail_over(Some([6 * HOUR, LONG, 3 * LONG, 10 * LONG][b % 4]), a, 0, false),
            Kind::FailOverLossless => self.fail_over(None, 0, 0, false),
            Kind::Burst => self.burst(a, b),
            Kind::Nudge => self.time += [SECOND, SECOND, 2 * SECOND, MINUTE][b % 4],
            Kind::Swap => self.fail_over([None, Some(SECOND), Some(2 * SECOND), Some(MINUTE)][b % 4], a, 0, false),
            Kind::Downgrade => earlier::downgrade(&mut self.registry, a as u32),
            Kind::Upgrade => self.upgrade(),
            Kind::RestoreRegistry => {
                self.fail_over(Some([0, HOUR, LONG, 3 * LONG][b % 4]), a, (b / 4 % 3) as u32, false);
            }
            Kind::RebuildRegistry => self.fail_over(Some([0, HOUR, LONG, 3 * LONG][b % 4]), a, 0, true),
            Kind::RestoreTables => {
                if b % 3 == 0 {
                    self.fail_over(None, 0, (b / 3 % 2) as u32, false);
                }
                self.restore_tables([0, MINUTE, HOUR, LONG][b / 8 % 4], a);
            }
            Kind::Forge => self.forge(a, b),
            Kind::RegistryClock => self.ahead = [0, GAP / 2, GAP][a % 3],
            Kind::Open => self.open(),
            Kind::ChangeLayout => self.change_layout(),
            Kind::Reserve => self.reserve(a),
            Kind::Release => self.release(a),
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
                crashed.process = None;
                crashed.memory.clear();
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

    pub fn start(&mut self, server: usize) {
        let number = self.new_number();
        self.servers[server].start(self.time, number, self.fault);
    }

    /// What happens to one server.
    fn act_on(&mut self, kind: Kind, server: usize, other: usize, b: usize) {
        let (time, fault) = (self.time, self.fault);
        let places = self.servers.len() < self.places;
        let stopped = self.servers[server].process.is_none();
        let number = self.new_number();
        let format = self.registry.fleet.format;
        let (other_mark, other_stopped) = (self.servers[other].mark, self.servers[other].process.is_none());
        let of = &mut self.servers[server];
        match kind {
            Kind::Start => of.start(time, number, fault),
            Kind::Stop => of.process = None,
            Kind::Registrar => of.restart_registrar(time, number),
            Kind::Reboot => {
                of.process = None;
                of.memory.clear();
            }
            Kind::CloneDisk if places => {
                let memory = if fault == Fault::WitnessOnDisk { of.memory.clone() } else { Vec::new() };
                let clone = Server { memory, process: None, cut: false, ..of.clone() };
                self.servers.push(clone);
            }
            Kind::CloneMemory if places && !stopped => {
                let clone = of.clone();
                self.checks.copied.extend(clone.holder().into_iter().chain(clone.claimant()));
                self.servers.push(clone);
            }
            Kind::Backup => of.backup = Some(of.mark),
            Kind::RestoreInPlace => {
                of.process = None;
                of.mark = of.backup.unwrap_or(Mark::NOTHING_ISSUED);
            }
            Kind::RestoreElsewhere => {
                of.process = None;
                of.mark = of.backup.unwrap_or(Mark::NOTHING_ISSUED);
                of.disk = number;
            }
            Kind::Promote => {
                of.process = None;
                of.mark = other_mark;
            }
            Kind::Move if stopped && other != server && other_stopped => {
                let (low, high) = (server.min(other), server.max(other));
                let (first, second) = self.servers.split_at_mut(high);
                std::mem::swap(&mut first[low].disk, &mut second[0].disk);
                std::mem::swap(&mut first[low].mark, &mut second[0].mark);
            }
            Kind::Clock => of.ahead = CLOCKS_AHEAD[b % CLOCKS_AHEAD.len()],
            Kind::TrueClock => of.ahead = 0,
            Kind::Cut => of.cut = true,
            Kind::Join => of.cut = false,
            Kind::Lease => {
                of.process = None;
                of.lease = [MARGIN, Duration::from_hours(1), Duration::from_hours(12), Duration::from_hours(24)][b % 4];
            }
            Kind::Configure => {
                of.process = None;
                of.format = format;
            }
            _ => {}
        }
    }
}
