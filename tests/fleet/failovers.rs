//! Failovers in a row of a cluster that contains its registry. No member keeps its witness: members are rebuilt on machines that have
//! just been started, or restarted in containers.

use std::thread;
use std::time::Duration;

use cluster::{Answer, Ask, Boot, Builder, Cluster, History, Host, Load, Stop, assert_caught, ensure, rounds, within};

use crate::fleet::{LAYOUT, SOON, number, refused, server};
use crate::rewound::rewind;

/// A cluster of three members, each of which connects to the same list of hosts.
struct Members {
    names: [String; 3],
    machines: [Boot; 3],
    sockets: [String; 3],
    running: [Option<Cluster>; 3],
    primary: usize,
}

impl Members {
    /// Starts the members, with the registry in the first primary.
    fn new(name: &str) -> Members {
        let names = [1, 2, 3].map(|n| format!("{name}_{n}"));
        let machines = [0, 1, 2].map(|n| Boot::new(&names[n]));
        let sockets = [0, 1, 2].map(|n| Host::get().socket_dir(&names[n]).display().to_string());
        let mut members = Members { names, machines, sockets, running: [None, None, None], primary: 0 };
        members.running[0] = Some(members.like(0).start());
        members.at(0).create_fleet(LAYOUT);
        for n in [1, 2] {
            members.rebuild(n);
        }
        members
    }

    fn like(&self, n: usize) -> Builder {
        let hosts = format!("host={} user=postgres dbname=postgres connect_timeout=2", self.sockets.join(","));
        let like = server(&self.names[n], &hosts).on(&self.machines[n]).set("hot_standby", "on");
        // pg_rewind needs these settings.
        let like = like.set("wal_log_hints", "on").set("wal_keep_size", "1GB");
        like.set("wal_retrieve_retry_interval", "200ms")
    }

    fn at(&self, n: usize) -> &Cluster {
        self.running[n].as_ref().expect("the member runs")
    }

    fn primary(&self) -> &Cluster {
        self.at(self.primary)
    }

    /// Replaces a member by a copy of the primary, on a machine that has just been started.
    fn rebuild(&mut self, n: usize) {
        self.running[n] = None;
        self.machines[n].reboot();
        self.running[n] = Some(self.primary().standby(self.like(n)));
    }

    /// Restarts the container of a member: PostgreSQL crashes, and finds an empty directory of witnesses at its next start.
    fn restart(&mut self, n: usize) {
        let member = self.running[n].as_mut().expect("the member runs");
        member.stop(Stop::Immediate);
        self.machines[n].reboot();
        member.start();
    }

    /// Restarts the container of a former primary that has crashed. Its data directory is rewound.
    fn rejoin(&mut self, n: usize) {
        self.primary().connect().batch_execute("CHECKPOINT").expect("a superuser may");
        rewind(self.at(n), self.primary());
        self.machines[n].reboot();
        self.running[n].as_mut().expect("the member was started").start();
    }

    /// The primary crashes, the standby that has received more is promoted, and the other one follows it. Returns the former primary.
    fn fail_over(&mut self) -> usize {
        let old = self.primary;
        self.running[old].as_mut().expect("the primary runs").stop(Stop::Immediate);
        let received = |n: usize| {
            self.at(n).connect().one::<i64>("SELECT (coalesce(pg_last_wal_receive_lsn(), '0/0') - '0/0')::bigint")
        };
        let (next, other) = ((old + 1) % 3, (old + 2) % 3);
        let (next, other) = if received(next) >= received(other) { (next, other) } else { (other, next) };
        self.at(next).promote();
        self.at(other).follow(self.at(next));
        self.primary = next;
        old
    }

    /// Lets sessions draw IDs on the primary for a moment.
    fn issue(&self) -> History {
        let load = Load::start(self.primary(), 2, Ask::READING, "");
        thread::sleep(Duration::from_millis(500));
        load.finish()
    }

    /// Checks that every member has a worker ID soon, and that they differ.
    fn check_numbers(&self) -> Result<(), String> {
        let numbers = || [0, 1, 2].map(|n| number(self.at(n)));
        let all = within(SOON, || {
            let [a, b, c] = numbers();
            ![&a, &b, &c].contains(&&"-1".to_string()) && a != b && b != c && a != c
        });
        ensure!(all, "the members have the worker IDs {:?}:\n{}", numbers(), self.primary().log());
        let issues = within(SOON, || refused(&mut self.primary().session()).is_none());
        ensure!(issues, "the primary issues no IDs:\n{}", self.primary().log());
        Ok(())
    }
}

/// What a registry does that has neither slices nor a quarantine of its own for spare worker IDs.
fn take_rules_away(client: &mut cluster::Client) {
    let offer = "'snowflake_registry.offer_of(snowflake_registry.fleet, bigint, integer)'::regprocedure";
    let definition: String = client.one(&format!("SELECT pg_get_functiondef({offer})"));
    let without = definition
        .replace("IF snowflake_registry.spare_quarantine_end(f) < now_point THEN", "IF false THEN")
        .replace("IF d.slices > 0 AND", "IF false AND");
    assert_eq!(without.matches("IF false").count(), 2, "{definition}");
    client.batch_execute(&without).expect("a superuser may");
}

/// Lets members crash. After each crash, every member must have a worker ID. `crash` returns what has happened.
fn check(
    name: &str,
    crashes: u64,
    spoil: bool,
    crash: impl Fn(&mut Members, u64) -> &'static str,
) -> Result<(), String> {
    let mut members = Members::new(name);
    members.check_numbers()?;
    if spoil {
        take_rules_away(&mut members.primary().connect());
    }
    Load::prepare(members.primary());
    let mut ledger = History::default();
    for n in 1..=crashes {
        ledger.merge(members.issue());
        let what = crash(&mut members, n);
        members.check_numbers().map_err(|reason| format!("after crash {n}, a {what}, {reason}"))?;
    }
    ledger.merge(members.issue());
    println!("{crashes} crashes, {} IDs, errors: {:?}", ledger.len(), ledger.errors);
    ledger.check(100)
}

/// The primary fails so many times, and is rebuilt. At the end, two containers are restarted without their memory filesystem.
fn check_row(name: &str, failovers: u64, spoil: bool) -> Result<(), String> {
    check(name, failovers + 2, spoil, |members, crash| {
        if crash <= failovers {
            let old = members.fail_over();
            members.rebuild(old);
            return "failover";
        }
        members.restart((members.primary + usize::from(crash == failovers + 1)) % 3);
        "restart"
    })
}

#[test]
fn every_member_has_a_worker_id_after_failovers_in_a_row() {
    check_row("row", rounds(10, 3), false).unwrap();
}

#[test]
fn a_registry_without_slices_leaves_a_member_without_a_worker_id_and_is_caught() {
    assert_caught(check_row("row_before", 4, true), "the members have the worker IDs");
}

/// Containers crash: every other time that of the primary, whose data directory is rewound after a failover, and otherwise that of a
/// standby or of the primary, which has returned before anybody takes over. No data directory is replaced.
#[test]
fn every_container_has_a_worker_id_after_crashes_in_a_row() {
    let crash = |members: &mut Members, crash: u64| match crash % 4 {
        1 | 3 => {
            let old = members.fail_over();
            members.rejoin(old);
            "failover"
        }
        2 => {
            members.restart(members.primary);
            "restart of the primary"
        }
        _ => {
            members.restart((members.primary + 1) % 3);
            "restart of a standby"
        }
    };
    check("containers", rounds(10, 3), false, crash).unwrap();
}
