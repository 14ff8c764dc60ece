//! A server: a machine with its memory, a data directory with its mark, and a process.

use std::time::Duration;

use flake::fleet::{
    Call, Effect, Grant, Member, MemberIdentity, MemberStanding, Record, RegistryAnswer, RegistryRefusal,
    RegistryRequest, Scale, Uuid,
};
use flake::{IdFormat, Mark, Node};

use crate::faults::{self, FleetFault};
use crate::invariants::{Checks, FleetFailure, IssuedBy};
use crate::world::{FORGER, FleetWorld, GAP};

#[derive(Clone, Debug, Hash)]
pub struct SimulatedServer {
    /// The witnesses in the memory of the machine, by data directory.
    pub memory: Vec<(u64, Record)>,
    pub disk: u64,
    /// The mark in the data directory.
    pub mark: Mark,
    /// The mark in the last backup of the data directory.
    pub backup: Option<Mark>,
    /// How far the wall clock is ahead, in microseconds.
    pub ahead: i64,
    /// True if the server cannot reach the registry.
    pub cut: bool,
    pub lease: Duration,
    /// The layout in the configuration.
    pub format: IdFormat,
    pub datacenter: u32,
    pub process: Option<ServerProcess>,
}

#[derive(Clone, Debug, Hash)]
pub struct ServerProcess {
    pub member: Member,
    /// A different number for each start of the registrar.
    pub number: u64,
    /// The layout that the process has read.
    pub format: IdFormat,
    /// The lowest word that can be issued next. The server has loaded its mark, and never goes back.
    pub next: u64,
}

/// Which of the IDs that it may issue a server issues: its clock can show any time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdChoice {
    Clock,
    Lowest,
    Highest,
}

impl SimulatedServer {
    pub fn new(disk: u64, format: IdFormat, datacenter: u32) -> SimulatedServer {
        SimulatedServer {
            memory: Vec::new(),
            disk,
            mark: Mark::NOTHING_ISSUED,
            backup: None,
            ahead: 0,
            cut: false,
            lease: Duration::from_hours(12),
            format,
            datacenter,
            process: None,
        }
    }

    fn witness(&self) -> Option<Record> {
        self.memory.iter().find(|(disk, _)| *disk == self.disk).map(|(_, record)| *record)
    }

    /// The machine is switched off, and what is in its memory is lost.
    pub fn reboot(&mut self) {
        self.process = None;
        self.memory.clear();
    }

    /// PostgreSQL stops, and the data directory is restored from its last backup, or from one without a mark.
    pub fn restore(&mut self) {
        self.process = None;
        self.mark = self.backup.unwrap_or(Mark::NOTHING_ISSUED);
    }

    /// Stores the record, or makes the witness void.
    fn store(&mut self) {
        let record = self.process.as_ref().and_then(|process| process.member.record()).copied();
        self.memory.retain(|(disk, _)| *disk != self.disk);
        self.memory.extend(record.map(|record| (self.disk, record)));
    }

    /// PostgreSQL starts.
    pub fn start(&mut self, time: i64, number: u64, fault: FleetFault) {
        if self.process.is_some() {
            return;
        }
        let identity = MemberIdentity { fleet: None, format: self.format, datacenter: self.datacenter };
        let clock = Scale::new(self.format).point(time + self.ahead);
        let record = self.witness().and_then(|record| Record::decode(&record.encode()));
        let member = Member::start(identity, faults::start(fault, record), clock);
        self.process = Some(ServerProcess { member, number, format: self.format, next: 0 });
        self.store();
        self.load(fault);
    }

    /// The registrar crashes and starts again. It knows what the witness knows, and the fence.
    pub fn restart_registrar(&mut self, time: i64, number: u64) {
        let Some(process) = &mut self.process else { return };
        let identity = MemberIdentity { fleet: None, format: process.format, datacenter: self.datacenter };
        let clock = Scale::new(process.format).point(time + self.ahead);
        process.number = number;
        process.member = match process.member.standing() {
            MemberStanding::Fenced { seen } => Member::fenced(identity, seen),
            MemberStanding::Seeking | MemberStanding::Holding(_) => {
                Member::start(identity, process.member.record().copied(), clock)
            }
        };
        self.store();
    }

    /// Loads the mark: after a start, and with a new worker ID.
    fn load(&mut self, fault: FleetFault) {
        let mark = self.mark;
        if let (Some(grant), Some(process)) = (self.grant(), &mut self.process) {
            let stamp = process.format.layout.stamp(grant.node).unwrap();
            let begin = faults::begin(fault, &grant, mark);
            process.next = begin.first_word(&stamp, process.format.layout.last_word());
        }
    }

    pub fn grant(&self) -> Option<Grant> {
        match self.process.as_ref()?.member.standing() {
            MemberStanding::Holding(grant) => Some(grant),
            MemberStanding::Seeking | MemberStanding::Fenced { .. } => None,
        }
    }

    pub fn fenced(&self) -> bool {
        self.process.as_ref().is_some_and(|process| matches!(process.member.standing(), MemberStanding::Fenced { .. }))
    }

    /// The holder that this server is, or will be if its next claim succeeds.
    pub fn holder(&self) -> Option<Uuid> {
        let record = self.process.as_ref()?.member.record();
        record.map(|record| record.holder).or_else(|| self.claimant())
    }

    /// The holder that this server will be if its next call is a claim that succeeds.
    pub fn claimant(&self) -> Option<Uuid> {
        let process = self.process.as_ref()?;
        let clock = Scale::new(process.format).point(0);
        match process.member.clone().request(clock, self.lease)?.request {
            RegistryRequest::Claim(claim) => Some(claim.holder),
            RegistryRequest::Renew(_) | RegistryRequest::Hello { .. } => None,
        }
    }

    /// The next call. The witness has the pending nonce before the call is sent.
    pub fn request(&mut self, time: i64, fault: FleetFault) -> Option<Call> {
        let process = self.process.as_mut()?;
        faults::request(fault, process);
        let clock = Scale::new(process.format).point(time + self.ahead);
        let call = process.member.request(clock, self.lease);
        if fault != FleetFault::PendingNotStored {
            self.store();
        }
        call
    }

    /// Takes an answer. Returns the effect.
    pub fn answer(&mut self, call: &Call, answer: &RegistryAnswer, fault: FleetFault) -> Effect {
        let Some(process) = &mut self.process else { return Effect::Ignored };
        let effect = process.member.answer(call, answer);
        self.store();
        if effect == Effect::Assigned {
            self.load(fault);
        }
        effect
    }

    /// Issues one ID, and returns it with its node, or `None` if no ID can be issued.
    pub fn issue(&mut self, at: IdChoice, time: i64, fault: FleetFault) -> Option<(i64, Node)> {
        let grant = self.grant()?;
        let process = self.process.as_mut()?;
        let layout = process.format.layout;
        let stamp = layout.stamp(grant.node).unwrap();
        let ceiling = faults::ceiling(fault, &grant, &stamp, layout.last_word());
        let clock = Scale::new(process.format).point(time + self.ahead);
        let word = match at {
            IdChoice::Clock => process.next.max(layout.word(clock.id())),
            IdChoice::Lowest => process.next,
            IdChoice::Highest => process.next.max(ceiling.saturating_sub(1)),
        };
        if word >= ceiling {
            return None;
        }
        // The mark and the witness come first, then the ID.
        let above = Mark::above(&stamp, word + 1);
        self.mark = self.mark.max(above);
        process.member.use_below(above);
        process.next = word + 1;
        self.store();
        Some((stamp.id(word), grant.node))
    }
}

impl FleetWorld {
    pub fn start(&mut self, server: usize) {
        let number = self.new_number();
        self.servers[server].start(self.time, number, self.fault);
    }

    pub fn worker(&self, server: usize) -> Option<u32> {
        self.servers[server].grant().map(|grant| grant.node.worker)
    }

    /// The data directory of a server is copied to a new machine.
    pub fn clone_disk(&mut self, server: usize) {
        let of = &self.servers[server];
        let memory = if self.fault == FleetFault::WitnessOnDisk { of.memory.clone() } else { Vec::new() };
        self.servers.push(SimulatedServer { memory, process: None, cut: false, ..of.clone() });
    }

    /// The machine of a server is copied with its memory.
    pub fn clone_memory(&mut self, server: usize) {
        let clone = self.servers[server].clone();
        self.checks.copied.extend(clone.holder().into_iter().chain(clone.claimant()));
        self.servers.push(clone);
    }

    pub fn take_answer(&mut self, server: usize, call: &Call, answer: &RegistryAnswer) {
        let holder = self.servers[server].holder();
        let grant = self.servers[server].grant();
        let fleet = self.registry.fleet;
        match self.servers[server].answer(call, answer, self.fault) {
            Effect::Assigned | Effect::Renewed => self.note_grant(server),
            Effect::Fenced => self.checks.fenced(holder),
            Effect::Lost(_) if call.format == fleet.format => {
                let now = self.registry.scale().point(self.time + GAP);
                // A forged call can take the row of a server whose last renewals were lost.
                let row = |grant: &Grant| self.registry.rows.get(&grant.node);
                let forged = |grant: &Grant| self.has_lost && row(grant).is_some_and(|row| row.holder == FORGER);
                if let Some(grant) = grant.filter(|grant| !forged(grant)) {
                    self.checks.lost(holder, &grant, fleet.floor, now);
                }
            }
            Effect::Refused(RegistryRefusal::Implausible) => self.checks.fail(FleetFailure::Refused),
            _ => {}
        }
    }

    fn note_grant(&mut self, server: usize) {
        let (Some(grant), Some(holder)) = (self.servers[server].grant(), self.servers[server].holder()) else { return };
        let process = self.servers[server].process.as_ref();
        let second = process.is_some_and(|process| process.format == self.formats[1]);
        self.checks.granted(holder, second, &grant);
    }

    pub fn issue(&mut self, server: usize, at: IdChoice) -> bool {
        let holder = self.servers[server].holder();
        let Some((id, _)) = self.servers[server].issue(at, self.time, self.fault) else { return false };
        Checks::issued(&mut self.checks, id, IssuedBy { server, holder });
        true
    }
}
