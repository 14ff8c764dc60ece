//! What happens in the search, step by step.

use flake::fleet::{Call, Point, Record, RegistryRequest};

use crate::earlier;
use crate::server::IdChoice;
use crate::world::{FleetWorld, HOUR, MINUTE, Packet, SECOND};

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
    fn server_mut(&mut self) -> Option<&mut usize> {
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

    pub fn server(mut self) -> Option<usize> {
        self.server_mut().copied()
    }

    /// Returns the same step of server B instead of A, and of A instead of B.
    pub fn exchanged(mut self) -> Step {
        if let Some(server) = self.server_mut().filter(|server| **server < 2) {
            *server = 1 - *server;
        }
        self
    }
}

impl FleetWorld {
    /// The standby of the registry that is behind has the current state.
    pub fn keep_behind(&mut self) {
        self.history = vec![(self.time, self.registry.clone(), self.source.tables)];
    }

    /// Sends calls until one is not a hello, and returns it.
    fn ready(&mut self, server: usize) -> Option<Call> {
        let call = self.send(server)?;
        if !matches!(call.request, RegistryRequest::Hello { .. }) {
            return Some(call);
        }
        self.exchange(server, &call);
        self.send(server)
    }

    /// Renewals every 25 minutes for so many hours.
    fn keep(&mut self, hours: i64, renew: impl Fn(&mut FleetWorld)) {
        let end = self.time + hours * HOUR;
        while self.time < end {
            self.time = end.min(self.time + 25 * MINUTE);
            renew(self);
        }
    }

    pub fn act(&mut self, step: Step) {
        match step {
            Step::Up(server) => {
                self.start(server);
                self.beat(server);
                if self.worker(server).is_some() {
                    self.beat(server);
                }
            }
            Step::Claim(server) => {
                self.start(server);
                self.beat(server);
            }
            Step::Renew(server) => self.beat(server),
            Step::Keep(server, hours) => self.keep(hours, |world| world.beat(server)),
            Step::KeepAll(hours) => self.keep(hours, FleetWorld::beat_all),
            Step::Hello(server) => {
                self.start(server);
                if let Some(call) = self.send(server)
                    && matches!(call.request, RegistryRequest::Hello { .. })
                {
                    self.exchange(server, &call);
                }
            }
            Step::Lose(server) => {
                self.start(server);
                if let Some(call) = self.ready(server) {
                    self.ask(&call);
                }
            }
            Step::Double(server) => {
                if let Some(call) = self.ready(server) {
                    self.exchange(server, &call);
                    self.wire.push(Packet { server, process: 0, call, answer: None });
                }
            }
            Step::Arrive => {
                if let Some(packet) = self.wire.pop() {
                    self.exchange(packet.server, &packet.call);
                }
            }
            Step::Restart(server) => {
                self.servers[server].process = None;
                self.start(server);
            }
            Step::Off(server) => self.servers[server].reboot(),
            Step::CloneDisk(server) => self.clone_disk(server),
            Step::CloneMemory(server) => self.clone_memory(server),
            Step::Backup(server) => self.servers[server].backup = Some(self.servers[server].mark),
            Step::Restore(server) => {
                self.servers[server].restore();
                self.start(server);
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
            // The only state that is kept is that of the standby.
            Step::FailOver => self.fail_over(None, 0, 0, false),
            Step::FailOverBehind => self.fail_over(Some(0), 0, 0, false),
            Step::SetBack(server) => {
                self.go_back(0, 0);
                self.source = self.registry.fleet.source;
                self.beat(server);
            }
            Step::Rebuild => self.fail_over(Some(0), 0, 0, true),
            Step::RestoreTables => {
                self.restore_tables(0, 0);
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
        let point = |hours: i64| scale.point(self.time + hours * HOUR);
        let life = self.registry.fleet.life;
        let call = match forgery {
            Forgery::Life => self.forged(life + 1, 1, point(-1), point(1)),
            Forgery::Start => self.forged(life, 1, point(72), point(96)),
            Forgery::Grant => self.forged(life, 1, point(0), point(1)),
            Forgery::Bound => self.forged(life, 1, point(0), Point::MAX),
            Forgery::Count => self.forged(life, 1_000_000_000_000, point(0), point(1)),
        };
        self.ask(&call);
    }

    /// Returns false if a step changes nothing, or nothing that matters.
    pub fn makes_sense(&self, step: Step) -> bool {
        let holds = |server: usize| self.servers[server].grant().is_some();
        let runs = |server: usize| self.servers[server].process.is_some();
        let fenced = |server: usize| self.servers[server].fenced();
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
