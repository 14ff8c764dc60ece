//! Failovers in a row of a cluster that contains its registry. No member keeps its witness, as in containers.

use std::thread;
use std::time::Duration;

use cluster::{Answer, Ask, Boot, Builder, Cluster, History, Host, Load, Stop, assert_caught, ensure, rounds, within};

use crate::fleet::{LAYOUT, SOON, number, refused, server};

/// A cluster of three members, each of which connects to the same list of hosts.
struct Members {
    names: [String; 3],
    machines: [Boot; 3],
    sockets: [String; 3],
    running: [Option<Cluster>; 3],
    primary: usize,
}

impl Members {
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
        server(&self.names[n], &hosts).on(&self.machines[n]).set("hot_standby", "on")
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

    /// The primary crashes, the standby that has received more is promoted, and the other one follows it.
    fn fail_over(&mut self) {
        let old = self.primary;
        self.running[old].as_mut().expect("the primary runs").stop(Stop::Immediate);
        let received = |n: usize| {
            self.at(n).connect().one::<i64>("SELECT (coalesce(pg_last_wal_receive_lsn(), '0/0') - '0/0')::bigint")
        };
        let (next, other) = ((old + 1) % 3, (old + 2) % 3);
        let (next, other) = if received(next) >= received(other) { (next, other) } else { (other, next) };
        self.at(next).promote();
        let conninfo = format!("host={} user=postgres", self.sockets[next]);
        let follower = self.running[other].as_mut().expect("the member runs");
        follower.set("primary_conninfo", &conninfo);
        follower.reload();
        self.primary = next;
        self.rebuild(old);
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

fn check(name: &str, failovers: u64, spoil: bool) -> Result<(), String> {
    let mut members = Members::new(name);
    members.check_numbers()?;
    if spoil {
        take_rules_away(&mut members.primary().connect());
    }
    Load::prepare(members.primary());
    let mut ledger = History::default();
    for failover in 1..=failovers {
        let load = Load::start(members.primary(), 2, Ask::READING, "");
        thread::sleep(Duration::from_millis(500));
        ledger.merge(load.finish());
        members.fail_over();
        members.check_numbers().map_err(|reason| format!("after failover {failover}, {reason}"))?;
    }
    // Containers are restarted without their memory filesystem.
    for n in [(members.primary + 1) % 3, members.primary] {
        members.machines[n].reboot();
        members.running[n].as_mut().expect("the member runs").restart(Stop::Immediate);
        members.check_numbers().map_err(|reason| format!("after a restart, {reason}"))?;
    }
    let load = Load::start(members.primary(), 2, Ask::READING, "");
    thread::sleep(Duration::from_millis(500));
    ledger.merge(load.finish());
    println!("{failovers} failovers, {} IDs, errors: {:?}", ledger.len(), ledger.errors);
    ledger.check(100)
}

#[test]
fn every_member_has_a_worker_id_after_failovers_in_a_row() {
    check("row", rounds(10, 3), false).unwrap();
}

#[test]
fn a_registry_without_slices_leaves_a_member_without_a_worker_id_and_is_caught() {
    assert_caught(check("row_before", 4, true), "the members have the worker IDs");
}
