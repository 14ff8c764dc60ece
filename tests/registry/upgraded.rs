//! A registry that is upgraded while its servers use it.

use std::fs;
use std::path::PathBuf;

use cluster::{Answer as _, Client, Cluster, Host, Stop, command, output, typed};
use flake::fleet::{Effect, Member, MemberStanding};

use crate::install::OBJECTS;
use crate::lost::{heartbeat, number, server};

const LAYOUT: &str = "41:10:12";
/// The state before the upgrade.
const BEFORE: &str = include_str!("snowflake_registry--0.2.0-dev.sql");

fn upgrade_script() -> String {
    let share = output(command(Host::get().installation().bin.join("pg_config")).arg("--sharedir"));
    let name = format!("extension/snowflake_registry--0.2.0-dev--{}.sql", env!("CARGO_PKG_VERSION"));
    fs::read_to_string(PathBuf::from(share.trim()).join(name)).expect("the script is installed")
}

/// Runs a script in a database in one transaction.
fn run(server: &Cluster, database: &str, script: &str) -> Result<String, String> {
    let mut psql = server.psql();
    psql.args(["-X", "-1", "-v", "ON_ERROR_STOP=1", "-d", database]);
    typed(psql, script)
}

/// Returns a server with a registry of the version before.
fn before(name: &str) -> Cluster {
    let server = Cluster::builder(name).unset("shared_preload_libraries").start();
    run(&server, "postgres", BEFORE).expect("the script runs");
    server.connect().one::<String>(&format!("SELECT snowflake_registry.create_fleet('{LAYOUT}')::text"));
    server
}

#[test]
fn the_upgrade_leaves_what_a_new_registry_has() {
    let server = before("registry_upgraded");
    server.connect().batch_execute("CREATE DATABASE fresh").expect("a superuser may");
    server.connect_to("fresh").batch_execute("CREATE EXTENSION snowflake_registry").expect("it is installed");
    let mut client = server.connect();
    let role = "CREATE ROLE fleet; SELECT snowflake_registry.grant_server('fleet')";
    client.batch_execute(role).expect("a superuser may");
    run(&server, "postgres", &upgrade_script()).expect("the upgrade runs");
    let kept = "SELECT count(*) FROM pg_proc p WHERE pronamespace = 'snowflake_registry'::regnamespace
        AND has_function_privilege('fleet', p.oid, 'EXECUTE')";
    assert_eq!(client.one::<i64>(kept), 7);
    client.batch_execute("DROP OWNED BY fleet").expect("a superuser may");
    let objects = |database: &str| server.connect_to(database).all::<String>(OBJECTS);
    assert_eq!(objects("postgres"), objects("fresh"));
    let again = run(&server, "postgres", &upgrade_script()).expect_err("there is nothing to do");
    assert!(again.contains("the registry is upgraded already"), "{again}");
}

/// What each server could issue: its worker ID, and the lowest and the highest ID.
#[derive(Default)]
struct Ledger(Vec<(usize, u32, i64, i64)>);

impl Ledger {
    fn note(&mut self, server: usize, member: &Member) {
        let MemberStanding::Holding(grant) = member.standing() else { return };
        let (worker, start, bound) = (grant.node.worker, grant.start.id(), grant.bound.id());
        for (other, known, first, last) in &self.0 {
            let apart = *other == server || *known != worker || *last < start || bound < *first;
            assert!(apart, "servers {other} and {server} both have worker ID {worker}");
        }
        self.0.push((server, worker, start, bound));
    }
}

fn beat_all(client: &mut Client, members: &mut [Member], ledger: &mut Ledger) {
    for (n, member) in members.iter_mut().enumerate() {
        let effect = heartbeat(client, member);
        assert!(matches!(effect, Effect::Assigned | Effect::Renewed), "server {n}: {effect:?}");
        ledger.note(n, member);
    }
}

#[test]
fn servers_go_on_during_an_upgrade_that_a_failover_loses() {
    let mut primary = before("registry_upgrade_lost");
    let mut ledger = Ledger::default();
    let mut members: Vec<Member> = (0..4).map(|_| server()).collect();
    let mut client = primary.connect();
    for _ in 0..3 {
        beat_all(&mut client, &mut members, &mut ledger);
    }
    let standby = primary.standby(Cluster::builder("registry_upgrade_kept").unset("shared_preload_libraries"));
    let late = primary.leave_behind(&standby);
    run(&primary, "postgres", &upgrade_script()).expect("the upgrade runs");
    members.push(server());
    for _ in 0..3 {
        beat_all(&mut client, &mut members, &mut ledger);
    }
    assert_eq!(client.one::<i64>("SELECT life FROM snowflake_registry.status"), 1, "an upgrade loses nothing");
    drop(client);
    primary.stop(Stop::Immediate);
    drop(late);
    standby.promote();

    // The functions of the version before answer, and nobody loses a worker ID.
    let mut client = standby.connect();
    let numbers: Vec<u32> = members.iter().map(number).collect();
    for _ in 0..3 {
        beat_all(&mut client, &mut members, &mut ledger);
    }
    run(&standby, "postgres", &upgrade_script()).expect("the upgrade runs again");
    for _ in 0..3 {
        beat_all(&mut client, &mut members, &mut ledger);
    }
    assert_eq!(members.iter().map(number).collect::<Vec<_>>(), numbers);
    // A new server gets no worker ID that an earlier version can have assigned and that the failover has lost.
    let mut newcomer = server();
    if heartbeat(&mut client, &mut newcomer) == Effect::Assigned {
        ledger.note(members.len(), &newcomer);
    }
}
