//! What happens in a world: actions that are chosen at random, and that a trace replays.

use std::time::Duration;

use flake::Mark;
use flake::fleet::MARGIN;

use crate::faults::Fault;
use crate::random::Random;
use crate::server::{At, Server};
use crate::world::{GAP, HOUR, LONG, MINUTE, Packet, SECOND, World};

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
    RestoreRegistry,
    RebuildRegistry,
    RegistryClock,
    Open,
    ChangeLayout,
    Configure,
}

/// One step of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action(pub Kind, pub usize, pub usize);

/// What happens in every world.
const ALWAYS: &[Kind] = &[
    Kind::Pass,
    Kind::Pass,
    Kind::PassTo,
    Kind::PassTo,
    Kind::PassTo,
    Kind::Quiet,
    Kind::Quiet,
    Kind::Up,
    Kind::Up,
    Kind::Up,
    Kind::Up,
    Kind::Up,
    Kind::Beat,
    Kind::Beat,
    Kind::Beat,
    Kind::BeatAll,
    Kind::BeatAll,
    Kind::Send,
    Kind::Send,
    Kind::Send,
    Kind::Deliver,
    Kind::Deliver,
    Kind::Deliver,
    Kind::Deliver,
    Kind::Drop,
    Kind::Start,
    Kind::Stop,
    Kind::Issue,
    Kind::Issue,
    Kind::Issue,
    Kind::Issue,
];

const MACHINES: &[Kind] = &[
    Kind::Reboot,
    Kind::CloneDisk,
    Kind::Backup,
    Kind::RestoreInPlace,
    Kind::RestoreElsewhere,
    Kind::Move,
    Kind::Promote,
    Kind::Registrar,
    Kind::Double,
    Kind::Double,
    Kind::Cut,
    Kind::Join,
];
const CLOCKS: &[Kind] = &[Kind::Clock, Kind::Clock, Kind::TrueClock, Kind::Reboot, Kind::Cut, Kind::Join];
const FAILOVERS: &[Kind] = &[
    Kind::FailOver,
    Kind::FailOver,
    Kind::FailOverLong,
    Kind::Cut,
    Kind::Cut,
    Kind::Join,
    Kind::Join,
    Kind::RegistryClock,
    Kind::RegistryClock,
    Kind::Reboot,
    Kind::Clock,
];
const BACKUPS: &[Kind] = &[
    Kind::FailOverLong,
    Kind::RestoreRegistry,
    Kind::RebuildRegistry,
    Kind::Cut,
    Kind::Join,
    Kind::RegistryClock,
    Kind::Reboot,
    Kind::Clock,
    Kind::TrueClock,
];
const OPENS: &[Kind] = &[
    Kind::FailOver,
    Kind::FailOverLossless,
    Kind::FailOverLossless,
    Kind::Open,
    Kind::Open,
    Kind::Reboot,
    Kind::Clock,
    Kind::Cut,
    Kind::Join,
];
const LAYOUTS: &[Kind] = &[
    Kind::ChangeLayout,
    Kind::Configure,
    Kind::Configure,
    Kind::FailOver,
    Kind::Cut,
    Kind::Join,
    Kind::Reboot,
    Kind::Clock,
    Kind::Lease,
];
const COPIES: &[Kind] =
    &[Kind::CloneMemory, Kind::CloneMemory, Kind::Send, Kind::Double, Kind::Cut, Kind::Join, Kind::FailOver];

/// The kinds of worlds.
pub const WORLDS: &[(&str, &[&[Kind]])] = &[
    ("undisturbed", &[]),
    ("machines", &[MACHINES]),
    ("clocks", &[CLOCKS]),
    ("failovers", &[FAILOVERS]),
    ("failovers in a row", &[FAILOVERS, FAILOVERS, FAILOVERS]),
    ("backups", &[BACKUPS]),
    ("opened", &[OPENS]),
    ("layouts", &[LAYOUTS]),
    ("copied memories", &[COPIES]),
    ("everything", &[MACHINES, CLOCKS, FAILOVERS, BACKUPS, OPENS, LAYOUTS]),
    ("everything and copied memories", &[MACHINES, CLOCKS, FAILOVERS, BACKUPS, OPENS, LAYOUTS, COPIES]),
];

/// Returns a random trace for worlds of this kind.
pub fn trace(random: &mut Random, kind: &[&[Kind]]) -> Vec<Action> {
    let mut trace = Vec::new();
    if random.below(2) == 0 {
        trace.extend([Action(Kind::Up, 0, 0), Action(Kind::Up, 1, 0), Action(Kind::Quiet, 2, 0)]);
    }
    let kinds: Vec<Kind> = ALWAYS.iter().chain(kind.iter().copied().flatten()).copied().collect();
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
            Kind::RestoreRegistry => {
                self.fail_over(Some([0, HOUR, LONG, 3 * LONG][b % 4]), a, (b / 4 % 3) as u32, false);
            }
            Kind::RebuildRegistry => self.fail_over(Some([0, HOUR, LONG, 3 * LONG][b % 4]), a, 0, true),
            Kind::RegistryClock => self.ahead = [0, GAP / 2, GAP][a % 3],
            Kind::Open => self.open(),
            Kind::ChangeLayout => self.change_layout(),
            _ => self.act_on(kind, server, other, b),
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
                self.checks.copied.extend(clone.holder());
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
