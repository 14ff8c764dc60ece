//! A registry that loses what it has stored: a failover to a standby that is behind, and a restored backup.

use cluster::{Answer as _, Client, Cluster, Host, Stop};
use flake::fleet::{Effect, Member, MemberStanding, Point, RegistryRefusal, Scale};

use crate::calls::{beat, check_quarantine, claim, format, member, registry, send};

const LAYOUT: &str = "41:10:12";

/// Runs one heartbeat of a server, and returns its effect.
pub fn heartbeat(client: &mut Client, member: &mut Member) -> Effect {
    beat(client, member, LAYOUT, |client, call| send(client, call).expect("the registry answers").0)
}

pub fn server() -> Member {
    member(LAYOUT)
}

pub fn number(member: &Member) -> u32 {
    match member.standing() {
        MemberStanding::Holding(grant) => grant.node.worker,
        other => panic!("{other:?}"),
    }
}

fn life(client: &mut Client) -> (i64, String, bool) {
    let row = client.query_one("SELECT life, life_reason, spare_closed FROM snowflake_registry.fleet", &[]);
    let row = row.expect("the fleet exists");
    (row.get(0), row.get(1), row.get(2))
}

#[test]
fn after_a_failover_that_lost_a_claim_the_server_keeps_its_number_and_nobody_else_gets_it() {
    let mut primary = registry("registry_primary", LAYOUT);
    let mut client = primary.connect();
    let (mut first, mut second) = (server(), server());
    assert_eq!(heartbeat(&mut client, &mut first), Effect::Assigned);
    assert_eq!(heartbeat(&mut client, &mut first), Effect::Renewed);
    let standby = primary.standby(Cluster::builder("registry_behind").unset("shared_preload_libraries"));
    let late = primary.leave_behind(&standby);
    // The standby does not know of this claim.
    assert_eq!(heartbeat(&mut client, &mut second), Effect::Assigned);
    assert_eq!((number(&first), number(&second)), (0, 1));
    drop(client);
    primary.stop(Stop::Immediate);
    drop(late);
    standby.promote();
    let mut client = standby.connect();
    // A new server gets a spare number, because the numbers of the ring may have been granted.
    assert_eq!(claim(&mut client, LAYOUT), Ok(768));
    assert_eq!(life(&mut client), (2, "timeline 2 follows timeline 1".into(), false));
    for member in [&mut first, &mut second] {
        assert_eq!(heartbeat(&mut client, member), Effect::Renewed);
        assert_eq!(heartbeat(&mut client, member), Effect::Renewed);
    }
    assert_eq!((number(&first), number(&second)), (0, 1));
    let known: Vec<i32> = client.all("SELECT worker_id FROM snowflake_registry.servers ORDER BY 1");
    assert_eq!(known, [0, 1, 768]);
}

/// Puts the server back to its present state after `lost` has happened, as a snapshot of its volume does.
fn put_back(server: &mut Cluster, name: &str, lost: impl FnOnce(&mut Client)) {
    server.stop(Stop::Fast);
    let aside = Host::get().fresh_dir(&format!("{name}.aside"));
    Host::get().copy_dir(server.dir(), &aside);
    server.start();
    lost(&mut server.connect());
    server.stop(Stop::Fast);
    std::fs::remove_dir_all(server.dir()).expect("the server is stopped");
    let dir = Host::get().fresh_dir(name);
    Host::get().copy_dir(&aside, &dir);
    let _ = std::fs::remove_dir_all(&aside);
    server.start();
}

#[test]
fn a_claim_waits_for_the_spare_worker_id_that_becomes_free_first() {
    const SMALL: &str = "41:3:12";
    let server = registry("registry_spare_used", SMALL);
    let mut client = server.connect();
    assert_eq!(claim(&mut client, SMALL), Ok(0));
    // A test cannot change the timeline of the server, so it changes the record.
    let failover =
        "UPDATE snowflake_registry.fleet SET timeline = timeline - 1; SELECT snowflake_registry.mark_fleet()";
    client.batch_execute(failover).expect("a superuser may");
    assert_eq!(claim(&mut client, SMALL), Ok(6));
    let over = "UPDATE snowflake_registry.fleet AS f
            SET spare_until = snowflake_registry.point_of(f, clock_timestamp() - interval '15 minutes');
        SELECT snowflake_registry.mark_fleet()";
    client.batch_execute(over).expect("a superuser may");
    let bound: i64 = client.one("SELECT bound FROM snowflake_registry.node WHERE worker_id = 6");
    let until = Point::new(bound).expect("a point").plus(Scale::new(format(SMALL)).margin());
    assert_eq!(claim(&mut client, SMALL), Err(RegistryRefusal::Quarantine { until }));
}

/// A backup is restored on the same timeline, so only a server that knows more than the registry shows that something was lost.
#[test]
fn a_server_that_knows_more_than_the_registry_begins_a_new_life() {
    let mut registry_server = registry("registry_backup", LAYOUT);
    let mut member = server();
    assert_eq!(heartbeat(&mut registry_server.connect(), &mut member), Effect::Assigned);
    put_back(&mut registry_server, "registry_backup", |client| {
        for _ in 0..3 {
            assert_eq!(heartbeat(client, &mut member), Effect::Renewed);
        }
    });
    let mut client = registry_server.connect();
    assert_eq!(heartbeat(&mut client, &mut member), Effect::Renewed);
    assert_eq!(life(&mut client), (2, "a server knew of renewals that the registry has lost".into(), true));
    check_quarantine(&mut client, LAYOUT).unwrap();
    assert_eq!(heartbeat(&mut client, &mut member), Effect::Renewed, "the server is not disturbed");
}
