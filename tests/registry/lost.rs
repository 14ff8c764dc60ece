//! Servers that send heartbeats to the registry, and spare worker IDs after a failover. Failovers and restored backups that lose
//! claims and renewals are tested with real servers, in `tests/fleet/registry_lost.rs` and `tests/fleet/staging.rs`.

use cluster::{Answer as _, Client};
use flake::fleet::{Effect, Member, MemberStanding, Point, RegistryRefusal, Scale};

use crate::calls::{LAYOUT, beat, claim, format, member, registry, send};

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
