//! A hundred members of a fleet that claim and renew at once, over a hundred connections to one registry, while time passes quickly:
//! the clock is stepped after some heartbeats, so that a slow machine shows the same.
//! Some of them reboot, some are restarted, some run beside a copy for a while, and answers are lost. One ledger contains every range
//! of IDs that was granted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use cluster::{Answer as _, Chance, Client, Cluster, assert_caught_by_chance, ensure, rounds, sqlstate};
use flake::Node;
use flake::fleet::{Effect, Member, MemberIdentity, MemberStanding, Record, Scale};

use crate::calls::{format, micros, send};
use crate::granted::GrantedRanges;

const MEMBERS: usize = 100;
const LEASE: Duration = Duration::from_mins(10);

/// With 224 worker IDs in the ring, worker IDs are used again.
const LAYOUT: &str = "41:8:14";

/// How far the clock is stepped each time, in seconds.
const STEP: u64 = 60;

/// After how many heartbeats of all members the clock is stepped.
const STEP_EVERY: usize = 25;

/// For how many steps a member sleeps. The grant has ended by then, with its margin.
const SLEEP: u64 = 22;

/// The clock of the registry, which passes with the heartbeats of the members.
struct RegistryClock<'a> {
    registry: &'a Cluster,
    state: Mutex<ClockState>,
    stepped: Condvar,
}

struct ClockState {
    steps: u64,
    heartbeats: usize,
    /// How many members neither sleep nor have ended.
    awake: usize,
}

impl RegistryClock<'_> {
    fn state(&self) -> MutexGuard<'_, ClockState> {
        self.state.lock().expect("nobody panics with the clock")
    }

    fn step(&self, state: &mut ClockState) {
        state.steps += 1;
        self.registry.set_clock(&format!("+{}", state.steps * STEP));
        self.stepped.notify_all();
    }

    /// Counts a heartbeat of a member.
    fn count(&self) {
        let mut state = self.state();
        state.heartbeats += 1;
        if state.heartbeats.is_multiple_of(STEP_EVERY) {
            self.step(&mut state);
        }
    }

    /// Waits until the clock has been stepped often enough. If all members wait, the clock is stepped without heartbeats.
    fn sleep(&self) {
        let mut state = self.state();
        let end = state.steps + SLEEP;
        self.rest(&mut state);
        while state.steps < end {
            if state.awake == 0 {
                self.step(&mut state);
            } else {
                state = self.stepped.wait(state).expect("nobody panics with the clock");
            }
        }
        state.awake += 1;
    }

    /// Counts out a member that sends no heartbeats until further notice. The sleeping members check whether another one is awake.
    fn rest(&self, state: &mut ClockState) {
        state.awake -= 1;
        self.stepped.notify_all();
    }
}

/// What the members were granted, and what went wrong.
#[derive(Default)]
struct GrantLedger {
    ranges: GrantedRanges,
    /// How often each answer came, by its kind.
    answers: BTreeMap<String, usize>,
    errors: BTreeMap<String, usize>,
    fenced_alone: usize,
}

impl GrantLedger {
    /// Checks that no ID was granted to two holders, and that nobody was fenced without a copy.
    fn check(&self) -> Result<(), String> {
        self.ranges.check()?;
        ensure!(self.errors.is_empty(), "the registry raised errors: {:?}", self.errors);
        ensure!(self.fenced_alone == 0, "{} members without a copy were fenced", self.fenced_alone);
        Ok(())
    }
}

/// A member, and the connection over which it talks to the registry.
struct ConnectedMember<'a> {
    client: Client,
    chance: Chance,
    ledger: &'a Mutex<GrantLedger>,
    clock: &'a RegistryClock<'a>,
    scale: Scale,
    /// The registry's clock in microseconds, as of the last answer.
    now: i64,
}

impl ConnectedMember<'_> {
    fn ledger(&self) -> MutexGuard<'_, GrantLedger> {
        self.ledger.lock().expect("nobody panics with the ledger")
    }

    fn start(&self, record: Option<Record>) -> Member {
        let identity = MemberIdentity { fleet: None, format: self.scale.format(), datacenter: 0 };
        Member::start(identity, record, self.scale.point(self.now))
    }

    /// Sends the calls of one heartbeat. One answer in `loses` is lost.
    fn heartbeat(&mut self, member: &mut Member, loses: usize) -> Option<Effect> {
        loop {
            let call = member.request(self.scale.point(self.now), LEASE)?;
            let (answer, now) = match send(&mut self.client, &call) {
                Ok(answered) => answered,
                Err(error) => {
                    let (code, message, ..) = sqlstate(&error);
                    // The caller sends such a call again. A forward step of the clock ends a wait for a lock too early.
                    if !["40001", "55P03"].contains(&code.as_str()) {
                        *self.ledger().errors.entry(format!("{code} {message}")).or_default() += 1;
                    }
                    return None;
                }
            };
            self.now = now;
            let kind = format!("{answer:?}").split([' ', '(']).take(2).collect::<Vec<_>>().join(" ");
            *self.ledger().answers.entry(kind).or_default() += 1;
            if self.chance.one_in(loses) {
                return None;
            }
            let effect = member.answer(&call, &answer);
            if let (Effect::Assigned | Effect::Renewed, Some(record)) = (effect, member.record()) {
                self.ledger().ranges.note(record);
            }
            if effect != Effect::Continue {
                return Some(effect);
            }
        }
    }

    /// Runs a member through its heartbeats. Returns it, and whether it had a copy since it got its worker ID.
    fn run(&mut self) -> (Member, bool) {
        let mut member = self.start(None);
        let mut copy: Option<Member> = None;
        let mut copied = false;
        for _ in 0..rounds(30, 15) {
            self.renew(&mut member, &mut copied, 12);
            self.clock.count();
            if let Some(other) = &mut copy {
                let mut other = other.clone();
                let fenced = self.heartbeat(&mut other, 12) == Some(Effect::Fenced);
                copy = Some(other).filter(|_| !fenced && !self.chance.one_in(3));
            }
            match self.chance.between(0, 39) {
                // The machine reboots.
                0 => member = self.start(None),
                // PostgreSQL is restarted.
                1..=3 => member = self.start(member.record().copied()),
                4..=5 if copy.is_none() && member.record().is_some() => {
                    copied = true;
                    copy = Some(member.clone());
                }
                // The member sleeps for longer than its lease.
                6 => self.clock.sleep(),
                _ => {}
            }
        }
        self.clock.rest(&mut self.clock.state());
        (member, copied)
    }

    /// Runs one heartbeat. A member that is fenced is restarted. Returns true if the grant was renewed.
    fn renew(&mut self, member: &mut Member, copied: &mut bool, loses: usize) -> bool {
        let effect = self.heartbeat(member, loses);
        match effect {
            Some(Effect::Assigned) => *copied = false,
            Some(Effect::Fenced) => {
                self.ledger().fenced_alone += usize::from(!*copied);
                *member = self.start(None);
            }
            _ => {}
        }
        effect == Some(Effect::Renewed)
    }
}

/// Runs `run` on all items at the same time, each in a thread of its own, and returns the results in the same order.
fn at_once<T: Send, R: Send>(items: Vec<T>, run: impl Fn(T) -> R + Sync) -> Result<Vec<R>, String> {
    let run = &run;
    thread::scope(|scope| {
        let threads: Vec<_> = items.into_iter().map(|item| scope.spawn(move || run(item))).collect();
        // A scope panics if a thread has panicked that nobody has joined.
        let ended: Vec<_> = threads.into_iter().map(thread::ScopedJoinHandle::join).collect();
        ended.into_iter().map(|ended| ended.map_err(|_| "a member's thread panicked".to_string())).collect()
    })
}

fn check(name: &str, change: impl Fn(&mut Client)) -> Result<(), String> {
    let registry = Cluster::builder(name).clock("+0").set("max_connections", "130").start_registry(LAYOUT);
    change(&mut registry.connect());
    let mut chance = Chance::of(name);
    let ledger = Mutex::new(GrantLedger::default());
    let state = Mutex::new(ClockState { steps: 0, heartbeats: 0, awake: MEMBERS });
    let clock = RegistryClock { registry: &registry, state, stepped: Condvar::new() };
    let scale = Scale::new(format(LAYOUT));
    let servers: Vec<ConnectedMember> = (0..MEMBERS)
        .map(|_| {
            let mut client = registry.connect();
            let now = client.one(&format!("SELECT {}", micros("clock_timestamp()")));
            ConnectedMember { client, chance: chance.fork(), ledger: &ledger, clock: &clock, scale, now }
        })
        .collect();
    let ended = at_once(servers, |mut server| {
        let ended = server.run();
        (server, ended)
    })?;
    // Time stands still, and the members come to rest.
    let held = at_once(ended, |(mut server, (mut member, mut copied))| {
        let _ = (0..10).any(|_| server.renew(&mut member, &mut copied, usize::MAX));
        member.standing()
    })?;
    let ledger = ledger.into_inner().expect("nobody panicked with the ledger");
    println!("{name}: {} ranges, {:#?}", ledger.ranges.0.len(), ledger.answers);
    ledger.check()?;
    let nodes: BTreeSet<Node> = held
        .iter()
        .filter_map(|standing| match standing {
            MemberStanding::Holding(grant) => Some(grant.node),
            _ => None,
        })
        .collect();
    ensure!(nodes.len() == MEMBERS, "{MEMBERS} members have {} worker IDs", nodes.len());
    let used: BTreeSet<Node> = ledger.ranges.0.keys().map(|(node, ..)| *node).collect();
    ensure!(used.len() < ledger.ranges.0.len(), "no worker ID was used again: nothing was shown");
    for kind in ["Claimed", "Renewed", "Lost", "Conflict"] {
        let came = ledger.answers.keys().any(|answer| answer.starts_with(kind));
        ensure!(came, "no answer was {kind}: {:?}", ledger.answers);
    }
    Ok(())
}

#[test]
fn a_hundred_members_at_once_are_granted_disjoint_ranges() {
    check("registry_crowd", |_| {}).unwrap();
}

#[test]
fn a_registry_without_its_row_lock_is_caught() {
    // Claims wait before they commit, so that they overlap and the fault is detected on any machine.
    let unlock = |client: &mut Client| {
        let sql = "CREATE OR REPLACE FUNCTION snowflake_registry.lock_fleet(exclusive boolean)
                   RETURNS snowflake_registry.fleet LANGUAGE sql AS 'SELECT * FROM snowflake_registry.fleet';
                   CREATE FUNCTION public.wait() RETURNS trigger LANGUAGE plpgsql
                   AS 'BEGIN PERFORM pg_sleep(0.02); RETURN NULL; END';
                   CREATE CONSTRAINT TRIGGER wait AFTER UPDATE ON snowflake_registry.node DEFERRABLE INITIALLY DEFERRED
                   FOR EACH ROW WHEN (OLD.holder <> NEW.holder) EXECUTE FUNCTION public.wait()";
        client.batch_execute(sql).expect("a superuser may");
    };
    assert_caught_by_chance(|| check("registry_unlocked", unlock), "two holders were granted the same IDs");
}
