//! What happens in the search, step by step.

use std::time::Duration;

use flake::fleet::{Call, MemberStanding, Point, Record, RegistryRequest, RenewRequest, Source, Uuid};

use crate::earlier;
use crate::faults;
use crate::server::{IdChoice, SimulatedServer};
use crate::world::{FORGER, FleetWorld, Packet};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A server starts if it does not run, claims a worker ID, and renews its grant.
    Up(usize),
    /// A server starts if it does not run, and claims a worker ID.
    Claim(usize),
    /// A server renews its grant.
    Renew(usize),
    /// A server renews its grant every 25 minutes for so many hours.
    Keep(usize, i64),
    /// All servers renew their grants every 25 minutes for so many hours.
    KeepAll(i64),
    /// A server calls the registry, and stops before it claims or renews.
    Hello(usize),
    /// The registry answers the next call of a server, and the answer is lost.
    Lose(usize),
    /// A server renews its grant, and a second copy of the call is delayed.
    Double(usize),
    /// The call that was delayed arrives.
    Arrive,
    /// PostgreSQL restarts.
    Restart(usize),
    /// The machine of a server restarts, so that its witness is lost.
    Off(usize),
    /// The data directory is copied to a new machine.
    CloneDisk(usize),
    /// The machine is copied with its memory.
    CloneMemory(usize),
    Backup(usize),
    Restore(usize),
    Issue(usize, IdChoice),
    /// The clock of a server, in microseconds ahead.
    Clock(usize, i64),
    /// A server has the fleet's layout.
    Configure(usize),
    /// So many seconds pass.
    Pass(i64),
    /// The clock of the registry, in microseconds ahead.
    RegistryClock(i64),
    /// A standby of the registry gets no changes any more.
    Behind,
    /// The registry fails over to a standby that has all changes.
    FailOver,
    /// The registry fails over to the standby that is behind.
    FailOverBehind,
    /// The registry's volume is set back, without a new timeline. A server whose worker ID or renewal is lost renews first.
    SetBack(usize),
    /// The registry's data is put into a new system.
    Rebuild,
    /// The registry's tables are restored from a dump.
    RestoreTables,
    Open,
    ChangeLayout,
    Upgrade,
    /// The owner of the registry reserves worker ID 0.
    Reserve,
    Release,
    /// A role that may call the functions sends a renewal of worker ID 0.
    Forge(Forgery),
}

/// What a forged renewal says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forgery {
    /// A life above that of the fleet.
    Life,
    /// A start in three days.
    Start,
    /// A grant that has just begun.
    Grant,
    /// A bound above all IDs.
    Bound,
    /// A count that no worker ID can reach.
    Count,
}

impl Step {
    /// Returns the same step of server B instead of A, and of A instead of B.
    pub fn exchanged(self) -> Step {
        let other = |server: usize| if server < 2 { 1 - server } else { server };
        match self {
            Step::Up(server) => Step::Up(other(server)),
            Step::Claim(server) => Step::Claim(other(server)),
            Step::Renew(server) => Step::Renew(other(server)),
            Step::Keep(server, hours) => Step::Keep(other(server), hours),
            Step::Hello(server) => Step::Hello(other(server)),
            Step::Lose(server) => Step::Lose(other(server)),
            Step::Double(server) => Step::Double(other(server)),
            Step::Restart(server) => Step::Restart(other(server)),
            Step::Off(server) => Step::Off(other(server)),
            Step::CloneDisk(server) => Step::CloneDisk(other(server)),
            Step::CloneMemory(server) => Step::CloneMemory(other(server)),
            Step::Backup(server) => Step::Backup(other(server)),
            Step::Restore(server) => Step::Restore(other(server)),
            Step::Issue(server, at) => Step::Issue(other(server), at),
            Step::Clock(server, ahead) => Step::Clock(other(server), ahead),
            Step::Configure(server) => Step::Configure(other(server)),
            Step::SetBack(server) => Step::SetBack(other(server)),
            step => step,
        }
    }

    pub fn server(self) -> Option<usize> {
        match self {
            Step::Up(server)
            | Step::Claim(server)
            | Step::Renew(server)
            | Step::Keep(server, _)
            | Step::Lose(server)
            | Step::Hello(server)
            | Step::Double(server)
            | Step::Restart(server)
            | Step::Off(server)
            | Step::CloneDisk(server)
            | Step::CloneMemory(server)
            | Step::Backup(server)
            | Step::Restore(server)
            | Step::Issue(server, _)
            | Step::Clock(server, _)
            | Step::SetBack(server)
            | Step::Configure(server) => Some(server),
            _ => None,
        }
    }
}

const SECOND: i64 = 1_000_000;
const BETWEEN: i64 = 25 * 60 * SECOND;

impl FleetWorld {
    pub fn worker(&self, server: usize) -> Option<u32> {
        self.servers[server].grant().map(|grant| grant.node.worker)
    }

    /// The standby of the registry that is behind has the current state.
    pub fn keep_behind(&mut self) {
        self.history = vec![(self.time, self.registry.clone(), self.source.tables)];
    }

    fn begin(&mut self, server: usize) {
        let number = self.new_number();
        self.servers[server].start(self.time, number, self.fault);
    }

    /// Sends calls until one is not a hello, and returns it.
    fn ready(&mut self, server: usize) -> Option<Call> {
        let call = self.send(server)?;
        if !matches!(call.request, RegistryRequest::Hello { .. }) {
            return Some(call);
        }
        let answer = self.ask(&call);
        self.take_answer(server, &call, &answer);
        self.send(server)
    }

    fn go_behind(&mut self) {
        let (_, state, tables) = self.history[0].clone();
        self.lost |= state != self.registry;
        self.has_lost |= self.lost;
        self.registry = state;
        self.source.tables = tables;
    }

    pub fn act(&mut self, step: Step) {
        match step {
            Step::Up(server) => {
                self.begin(server);
                self.beat(server);
                if self.worker(server).is_some() {
                    self.beat(server);
                }
            }
            Step::Claim(server) => {
                self.begin(server);
                self.beat(server);
            }
            Step::Renew(server) => self.beat(server),
            Step::Keep(server, hours) => {
                let end = self.time + hours * 3_600 * SECOND;
                while self.time < end {
                    self.time = end.min(self.time + BETWEEN);
                    self.beat(server);
                }
            }
            Step::KeepAll(hours) => {
                let end = self.time + hours * 3_600 * SECOND;
                while self.time < end {
                    self.time = end.min(self.time + BETWEEN);
                    self.beat_all();
                }
            }
            Step::Hello(server) => {
                self.begin(server);
                if let Some(call) = self.send(server)
                    && matches!(call.request, RegistryRequest::Hello { .. })
                {
                    let answer = self.ask(&call);
                    self.take_answer(server, &call, &answer);
                }
            }
            Step::Lose(server) => {
                self.begin(server);
                if let Some(call) = self.ready(server) {
                    self.ask(&call);
                }
            }
            Step::Double(server) => {
                if let Some(call) = self.ready(server) {
                    let answer = self.ask(&call);
                    self.take_answer(server, &call, &answer);
                    self.wire.push(Packet { server, process: 0, call, answer: None });
                }
            }
            Step::Arrive => {
                if let Some(packet) = self.wire.pop() {
                    let answer = self.ask(&packet.call);
                    self.take_answer(packet.server, &packet.call, &answer);
                }
            }
            Step::Restart(server) => {
                self.servers[server].process = None;
                self.begin(server);
            }
            Step::Off(server) => {
                self.servers[server].process = None;
                self.servers[server].memory.clear();
            }
            Step::CloneDisk(server) => {
                let of = &self.servers[server];
                let fault = self.fault == faults::FleetFault::WitnessOnDisk;
                let memory = if fault { of.memory.clone() } else { Vec::new() };
                self.servers.push(SimulatedServer { memory, process: None, ..of.clone() });
            }
            Step::CloneMemory(server) => {
                let clone = self.servers[server].clone();
                self.checks.copied.extend(clone.holder().into_iter().chain(clone.claimant()));
                self.servers.push(clone);
            }
            Step::Backup(server) => self.servers[server].backup = Some(self.servers[server].mark),
            Step::Restore(server) => {
                self.servers[server].process = None;
                self.servers[server].mark = self.servers[server].backup.unwrap_or(flake::Mark::NOTHING_ISSUED);
                self.begin(server);
            }
            Step::Issue(server, at) => {
                self.issue(server, at);
            }
            Step::Clock(server, ahead) => self.servers[server].ahead = ahead,
            Step::Configure(server) => {
                self.servers[server].process = None;
                self.servers[server].format = self.registry.fleet.format;
            }
            Step::Pass(seconds) => self.time += seconds * SECOND,
            Step::RegistryClock(ahead) => self.ahead = ahead,
            Step::Behind => self.keep_behind(),
            Step::FailOver => self.next_timeline(),
            Step::FailOverBehind => {
                self.next_timeline();
                self.go_behind();
            }
            Step::SetBack(server) => {
                self.go_behind();
                self.source = self.registry.fleet.source;
                self.beat(server);
            }
            Step::Rebuild => {
                self.go_behind();
                let Source { system, tables, .. } = self.newest;
                self.newest = Source { system: system + 1, timeline: 1, tables: tables + 1 };
                self.source = self.newest;
            }
            Step::RestoreTables => {
                self.go_behind();
                self.newest.tables += 1;
                self.source.tables = self.newest.tables;
                // Losing the restore itself is outside the promise.
                self.keep_behind();
            }
            Step::Open => self.open(),
            Step::Forge(forgery) => self.forge(forgery),
            Step::ChangeLayout => {
                self.change_layout();
                self.keep_behind();
            }
            Step::Upgrade => self.upgrade(),
            Step::Reserve => self.reserve(0),
            Step::Release => {
                self.release(0);
                // Losing the release is outside the promise.
                self.keep_behind();
            }
        }
    }

    /// Returns true if a copy of a server has renewed their grant since it was made.
    pub fn a_copy_has_renewed(&self, server: usize) -> bool {
        let record = |server: usize| self.servers[server].process.as_ref()?.member.record();
        let later = |own: &Record, other: &Record| other.holder == own.holder && other.count > own.count;
        record(server).is_some_and(|own| {
            (0..self.servers.len()).any(|other| record(other).is_some_and(|record| later(own, record)))
        })
    }

    /// Returns true if another server has an older copy of the grant.
    pub fn a_copy_was_renewed(&self, server: usize) -> bool {
        (0..self.servers.len()).any(|other| {
            let same = self.servers[other].holder() == self.servers[server].holder();
            other != server && same && self.servers[other].grant().is_some() && self.a_copy_has_renewed(other)
        })
    }

    /// Returns true if the state to which the registry can be set back has an older row of a server's grant, or none.
    fn would_tell(&self, server: usize) -> bool {
        let (_, state, _) = &self.history[0];
        let Some(record) = self.servers[server].process.as_ref().and_then(|process| process.member.record()) else {
            return false;
        };
        let row = state.rows.get(&record.node);
        record.life > state.fleet.life
            || (record.life == state.fleet.life && row.is_none_or(|row| row.count < record.count))
    }

    fn forge(&mut self, forgery: Forgery) {
        let scale = self.registry.scale();
        let point = |hours: i64| scale.point(self.time + hours * 3_600 * SECOND);
        let life = self.registry.fleet.life;
        let (life, count, start, bound) = match forgery {
            Forgery::Life => (life + 1, 1, point(-1), point(1)),
            Forgery::Start => (life, 1, point(72), point(96)),
            Forgery::Grant => (life, 1, point(0), point(1)),
            Forgery::Bound => (life, 1, point(0), Point::MAX),
            Forgery::Count => (life, 1_000_000_000_000, point(0), point(1)),
        };
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
            clock: point(0),
            lease: Duration::from_hours(12),
        });
        self.ask(&Call { fleet: None, format: scale.format(), request });
    }

    fn next_timeline(&mut self) {
        self.newest.timeline += 1;
        self.source.timeline = self.newest.timeline;
    }

    /// Returns false if a step changes nothing, or nothing that matters.
    pub fn makes_sense(&self, step: Step) -> bool {
        let holds = |server: usize| self.servers[server].grant().is_some();
        let runs = |server: usize| self.servers[server].process.is_some();
        let fenced = |server: usize| {
            let process = self.servers[server].process.as_ref();
            process.is_some_and(|process| matches!(process.member.standing(), MemberStanding::Fenced { .. }))
        };
        let behind = || self.history[0].1 != self.registry;
        if step.server().is_some_and(|server| server >= self.servers.len()) {
            return false;
        }
        match step {
            Step::Up(server) | Step::Claim(server) => !holds(server) && !fenced(server),
            Step::Renew(server) | Step::Keep(server, _) | Step::Issue(server, _) => holds(server),
            Step::Lose(server) | Step::Hello(server) => !fenced(server),
            Step::Double(server) => holds(server) && self.wire.is_empty(),
            Step::Arrive => !self.wire.is_empty(),
            Step::Restart(server) | Step::Restore(server) | Step::Off(server) => runs(server),
            Step::CloneDisk(server) | Step::CloneMemory(server) => runs(server) && self.servers.len() < self.places,
            Step::Backup(server) => self.servers[server].backup != Some(self.servers[server].mark),
            Step::Clock(server, ahead) => self.servers[server].ahead != ahead,
            Step::Configure(server) => self.servers[server].format != self.registry.fleet.format,
            Step::RegistryClock(ahead) => self.ahead != ahead,
            Step::SetBack(server) => self.would_tell(server),
            Step::Behind | Step::FailOverBehind => behind(),
            Step::Rebuild
            | Step::RestoreTables
            | Step::Pass(_)
            | Step::KeepAll(_)
            | Step::FailOver
            | Step::Open
            | Step::ChangeLayout
            | Step::Forge(_) => true,
            Step::Upgrade => earlier::is_earlier(&self.registry),
            Step::Reserve => self.reserved.is_empty(),
            Step::Release => !self.reserved.is_empty(),
        }
    }
}
