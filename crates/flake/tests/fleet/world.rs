//! A world: a registry with the hosts that run it one after the other, servers, and messages on their way.

use std::time::Duration;

use flake::fleet::{
    Call, FAR, MARGIN, Moment, Point, Registry, RegistryAnswer, RegistryRequest, RenewRequest, Source, Uuid,
};
use flake::{Epoch, IdFormat, Layout, Node, Tick};

use crate::faults::{self, FleetFault};
use crate::invariants::{Checks, FleetFailure};
use crate::server::SimulatedServer;

pub const SECOND: i64 = 1_000_000;
pub const MINUTE: i64 = 60 * SECOND;
pub const HOUR: i64 = 60 * MINUTE;
pub const GAP: i64 = MARGIN.as_micros() as i64;
pub const LONG: i64 = FAR.as_micros() as i64;
/// When every world begins: in November 2023.
pub const BEGIN: i64 = 1_700_000_000 * SECOND;
/// The holder that every forged call names.
pub const FORGER: Uuid = Uuid(1);

/// A call or an answer on its way. An answer contains its call.
#[derive(Clone, Copy, Debug, Hash)]
pub struct Packet {
    /// The server that sent the call.
    pub server: usize,
    /// The process that sent it. Only this process can get the answer to a hello, which has no nonce of its own.
    pub process: u64,
    pub call: Call,
    pub answer: Option<RegistryAnswer>,
}

/// How a world begins.
#[derive(Clone, Copy, Debug)]
pub struct FleetSetup {
    pub fault: FleetFault,
    /// The width of the worker field. The ring has few numbers.
    pub worker_bits: u32,
    /// The datacenters that the servers are in, 1 or 2.
    pub datacenters: u32,
    pub servers: usize,
}

#[derive(Clone)]
pub struct FleetWorld {
    pub time: i64,
    pub fault: FleetFault,
    pub datacenters: u32,
    pub formats: [IdFormat; 2],
    pub registry: Registry,
    pub source: Source,
    /// The highest timeline, system identifier and tables that any host of the registry had.
    pub newest: Source,
    /// How far the registry's clock is ahead, from 0 to [`GAP`].
    pub ahead: i64,
    /// Earlier states, with the times at which they were replaced and the tables that contained them.
    pub history: Vec<(i64, Registry, u64)>,
    /// True if the registry has lost something that it does not know of yet, and if it has lost something since its quarantine began.
    pub lost: bool,
    pub lost_in_quarantine: bool,
    /// The worker IDs that the owner of the registry has reserved, and knows to be reserved.
    pub reserved: Vec<Node>,
    /// True if the registry has ever lost something.
    pub has_lost: bool,
    pub nonces: u128,
    pub numbers: u64,
    pub wire: Vec<Packet>,
    pub servers: Vec<SimulatedServer>,
    /// The number of servers at most.
    pub places: usize,
    pub checks: Checks,
}

/// The layout of a world, and the one that it changes to. IDs with the second one are the same numbers at the beginning of the
/// world, and grow twice as fast.
fn formats(setup: FleetSetup) -> [IdFormat; 2] {
    let datacenter_bits = (setup.datacenters > 1).then_some(1);
    let layout = |sequence| Layout::of(34, datacenter_bits, setup.worker_bits, sequence, Tick::S1).unwrap();
    let first = Epoch::from_unix_ms(1_600_000_000_000).unwrap();
    let second = Epoch::from_unix_ms((first.unix_ms() + BEGIN / 1_000) / 2).unwrap();
    [IdFormat { layout: layout(3), epoch: first }, IdFormat { layout: layout(4), epoch: second }]
}

impl FleetWorld {
    pub fn new(setup: FleetSetup) -> FleetWorld {
        let formats = formats(setup);
        let source = Source { system: 1, timeline: 1, tables: 1 };
        let mut world = FleetWorld {
            time: BEGIN,
            fault: setup.fault,
            datacenters: setup.datacenters,
            formats,
            registry: Registry::new(Uuid(7), formats[0], source),
            source,
            newest: source,
            ahead: 0,
            history: Vec::new(),
            lost: false,
            lost_in_quarantine: false,
            reserved: Vec::new(),
            has_lost: false,
            nonces: 1_000,
            numbers: 0,
            wire: Vec::new(),
            servers: Vec::new(),
            places: 6,
            checks: Checks::default(),
        };
        for _ in 0..setup.servers {
            world.add_server();
        }
        world
    }

    /// Adds a server on a new machine with an empty disk.
    pub fn add_server(&mut self) -> usize {
        let disk = self.new_number();
        let datacenter = self.servers.len() as u32 % self.datacenters;
        self.servers.push(SimulatedServer::new(disk, self.registry.fleet.format, datacenter));
        self.servers.len() - 1
    }

    pub fn new_number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// The registry's clock, as a point of the fleet's layout.
    pub fn now(&self) -> Point {
        self.registry.scale().point(self.time + self.ahead)
    }

    pub fn moment(&mut self) -> Moment {
        self.nonces += 1;
        Moment { now: self.now(), source: self.source, nonce: Uuid(self.nonces) }
    }

    /// The registry answers a call.
    pub fn ask(&mut self, call: &Call) -> RegistryAnswer {
        let moment = self.moment();
        if !matches!(call.request, RegistryRequest::Hello { .. }) || self.registry.fleet.source != self.source {
            self.remember();
        }
        let answer = self.noting(&moment, |world| {
            world.keep_reservations(&moment);
            faults::call(world.fault, &mut world.registry, &moment, call)
        });
        self.checks.answer(&moment, call, &answer);
        answer
    }

    /// The registry answers a call of a server, and the server takes the answer.
    pub fn exchange(&mut self, server: usize, call: &Call) -> RegistryAnswer {
        let answer = self.ask(call);
        self.take_answer(server, call, &answer);
        answer
    }

    /// Keeps the current state as one to which the registry can be set back.
    pub fn remember(&mut self) {
        let tables = self.source.tables;
        if self.history.last().is_none_or(|(_, state, of)| (state, *of) != (&self.registry, tables)) {
            self.history.push((self.time, self.registry.clone(), tables));
        }
    }

    /// Makes a change, and notes what a discontinuity that the registry has noticed makes of what an administrator can say.
    pub fn noting<T>(&mut self, moment: &Moment, change: impl FnOnce(&mut FleetWorld) -> T) -> T {
        let (before, quarantined) = (self.registry.fleet, self.registry.in_quarantine(moment.now));
        let changed = change(self);
        if self.registry.fleet.life == before.life {
            return changed;
        }
        let moved = before.source != self.source;
        self.lost_in_quarantine &= quarantined;
        if moved {
            self.lost_in_quarantine |= self.lost;
            self.lost = false;
        }
        // A renewal has told that there was a loss.
        self.lost_in_quarantine |= self.registry.fleet.life > before.life + u64::from(moved);
        changed
    }

    /// Another host runs the registry, with one of the states of the last `age` microseconds, or with the current one.
    pub fn fail_over(&mut self, age: Option<i64>, pick: usize, skipped: u32, new_system: bool) {
        if new_system {
            self.newest = Source { system: self.newest.system + 1, timeline: 1, tables: self.newest.tables + 1 };
        } else {
            self.newest.timeline += 1 + skipped;
            self.source = Source { timeline: self.newest.timeline, ..self.source };
        }
        if let Some(tables) = age.and_then(|age| self.go_back(age, pick)) {
            self.source.tables = tables;
        }
        if new_system {
            self.source = self.newest;
        }
    }

    /// The rows of the registry are replaced by those of a dump, on the same server.
    pub fn restore_tables(&mut self, age: i64, pick: usize) {
        self.go_back(age, pick);
        self.newest.tables += 1;
        self.source.tables = self.newest.tables;
        // Losing the restore itself is outside the promise.
        self.history.clear();
    }

    /// The registry has one of the states of the last `age` microseconds. Returns the tables that contained it.
    pub fn go_back(&mut self, age: i64, pick: usize) -> Option<u64> {
        let begin = self.history.partition_point(|(time, ..)| *time < self.time - age);
        // Without a change in this time, the last state before the current one is as old as any.
        let begin = begin.min(self.history.len().checked_sub(1)?);
        let chosen = begin + pick % (self.history.len() - begin);
        let (_, state, tables) = self.history[chosen].clone();
        self.lost |= state != self.registry;
        self.has_lost |= self.lost;
        self.registry = state;
        self.history.truncate(chosen + 1);
        Some(tables)
    }

    /// The administrator says that nothing was lost, if this is true.
    pub fn open(&mut self) {
        let moment = self.moment();
        let quarantined = self.registry.in_quarantine(moment.now);
        let moved = self.registry.fleet.source != self.source;
        let lost = (quarantined && self.lost_in_quarantine) || (moved && self.lost);
        if lost || !(quarantined || moved) {
            return;
        }
        self.remember();
        self.noting(&moment, |world| faults::open(world.fault, &mut world.registry, &moment));
    }

    /// The administrator changes the layout, or changes it back.
    pub fn change_layout(&mut self) {
        let second = self.registry.fleet.format == self.formats[0];
        let moment = self.moment();
        let format = self.formats[usize::from(second)];
        self.noting(&moment, |world| faults::change_layout(world.fault, &mut world.registry, &moment, format));
        // Losing a change of the layout is outside the promise.
        self.history.clear();
    }

    /// Time passes until the registry's clock is at a point where a decision changes: at a bound or the end of a quarantine, or one
    /// or two margins later.
    pub fn pass_to(&mut self, pick: usize, offset: i64) {
        let mut points: Vec<Point> =
            self.registry.rows.values().filter(|row| !row.is_reserved()).map(|row| row.bound).collect();
        let fleet = &self.registry.fleet;
        points.extend([fleet.quarantine_until, fleet.newest_seen, fleet.spare_until, fleet.spare_before]);
        let point = points[pick / 3 % points.len()];
        let at = self.registry.scale().time(point) as i64 + (pick % 3) as i64 * GAP + offset - self.ahead;
        if at > self.time && at < self.time + 3 * LONG {
            self.time = at;
        }
    }

    /// Delivers a message. A call becomes an answer, which is on its way then.
    pub fn deliver(&mut self, pick: usize, keep: bool) {
        if self.wire.is_empty() || (keep && self.wire.len() > 20) {
            return;
        }
        let at = pick % self.wire.len();
        let packet = if keep { self.wire[at] } else { self.wire.remove(at) };
        match packet.answer {
            None => {
                let answer = self.ask(&packet.call);
                self.wire.push(Packet { answer: Some(answer), ..packet });
            }
            Some(answer) => {
                let server = &self.servers[packet.server];
                let same = server.process.as_ref().is_some_and(|process| process.number == packet.process);
                if !server.cut && (same || !matches!(packet.call.request, RegistryRequest::Hello { .. })) {
                    self.take_answer(packet.server, &packet.call, &answer);
                }
            }
        }
    }

    /// Sends a server's next call and returns it. It is lost if the server is cut off.
    pub fn send(&mut self, server: usize) -> Option<Call> {
        let call = self.servers[server].request(self.time, self.fault)?;
        if self.servers[server].cut {
            return None;
        }
        Some(call)
    }

    /// A heartbeat without disturbance: two calls and their answers.
    pub fn beat(&mut self, server: usize) {
        for _ in 0..2 {
            if let Some(call) = self.send(server) {
                self.exchange(server, &call);
            }
        }
    }

    pub fn beat_all(&mut self) {
        for server in 0..self.servers.len() {
            self.beat(server);
        }
    }

    /// A renewal of worker ID 0 by a role that is not its holder.
    pub fn forged(&self, life: u64, count: u64, start: Point, bound: Point) -> Call {
        let request = RegistryRequest::Renew(RenewRequest {
            datacenter: 0,
            worker: 0,
            holder: FORGER,
            count,
            life,
            nonce: Uuid(2),
            next_nonce: Uuid(2),
            start,
            bound,
            clock: self.registry.scale().point(self.time),
            lease: Duration::from_hours(12),
        });
        Call { fleet: None, format: self.registry.fleet.format, request }
    }

    pub fn failed(&self) -> Option<&FleetFailure> {
        self.checks.failure.as_ref()
    }
}
