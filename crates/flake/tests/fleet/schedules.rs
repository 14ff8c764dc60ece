//! Schedules, step by step: what a renewal, a claim and a crash must not do, and what must go on working.

use std::time::Duration;

use flake::fleet::{RegistryAnswer, RegistryRefusal};

use crate::faults::FleetFault;
use crate::invariants::FleetFailure;
use crate::steps::{begin, run};
use crate::world::{FleetWorld, GAP, HOUR, MINUTE, SECOND};

#[test]
fn one_failover_is_one_life_however_many_renewals_were_lost() {
    let mut world = begin(FleetFault::None, 3, 4);
    world.up(0);
    world.up(1);
    world.quiet(3, MINUTE);
    let state = world.registry.clone();
    world.quiet(2, MINUTE);
    world.promote(&state);
    world.cut(1);
    world.beat(0);
    let until = world.registry.fleet.quarantine_until;
    world.quiet(5, HOUR);
    world.join(1);
    world.quiet(1, MINUTE);
    assert_eq!((world.registry.fleet.life, world.registry.fleet.quarantine_until), (2, until));
    assert!(!world.registry.fleet.spare_closed);
    world.up(2);
    assert_eq!((world.worker(0), world.worker(1), world.worker(2)), (Some(0), Some(1), Some(6)));
    assert_eq!(world.failed(), None);
}

#[test]
fn a_crash_loop_uses_up_minutes_and_not_leases_caught() {
    let schedule = |fault| {
        let mut world = begin(fault, 4, 2);
        let mut refused = 0;
        for _ in 0..120 {
            world.off(0);
            world.start(0);
            world.beat(0);
            refused += usize::from(world.worker(0).is_none());
            world.time += 2 * MINUTE;
        }
        assert_eq!(world.failed(), None);
        refused
    };
    assert_eq!(schedule(FleetFault::None), 0);
    assert!(schedule(FleetFault::FirstLease) > 0);
}

#[test]
fn a_server_whose_clock_is_behind_takes_no_worker_id_from_others() {
    let mut world = begin(FleetFault::None, 1, 3);
    world.up(0);
    world.up(1);
    world.quiet(2, MINUTE);
    world.off(1);
    world.time = world.bound(0) + GAP + MINUTE;
    world.beat(0);
    world.beat(0);
    // A worker ID is free since a minute, but not yet by the clock of a server that is an hour behind.
    world.servers[2].ahead = -HOUR;
    for _ in 0..5 {
        world.time += MINUTE;
        world.up(2);
        assert_eq!(world.worker(2), None);
    }
    world.up(1);
    assert_eq!(world.failed(), None);
    assert!(world.worker(0).is_some() && world.worker(1).is_some());
}

#[test]
fn a_failover_without_a_loss_leaves_a_spare_worker_id_for_one_newcomer_each() {
    let mut world = begin(FleetFault::None, 4, 1);
    world.up(0);
    world.quiet(2, MINUTE);
    let mut workers = vec![world.worker(0)];
    for _ in 0..3 {
        world.promote(&world.registry.clone());
        world.quiet(1, MINUTE);
        let newcomer = world.add_server();
        world.up(newcomer);
        workers.push(world.worker(newcomer));
        // The spare holders restart their machines after the quarantine, and get worker IDs of the ring.
        world.quiet(44, 50 * MINUTE);
        world.off(newcomer);
        world.quiet(22, 50 * MINUTE);
        world.up(newcomer);
    }
    assert_eq!(workers, [Some(0), Some(12), Some(13), Some(12)]);
    assert_eq!(world.failed(), None);
}

#[test]
fn the_renewals_of_a_lost_timeline_close_no_slice_caught() {
    let schedule = |fault| {
        let mut world = begin(fault, 4, 3);
        world.up(0);
        world.quiet(2, MINUTE);
        let state = world.registry.clone();
        world.promote(&state);
        world.quiet(2, MINUTE);
        // The whole second timeline is lost.
        world.promote(&state);
        world.quiet(2, MINUTE);
        world.up(1);
        assert_eq!(world.failed(), None);
        world.worker(1)
    };
    assert_eq!(schedule(FleetFault::None), Some(15));
    assert_eq!(schedule(FleetFault::OneLife), None);
}

#[test]
fn a_claim_waits_for_the_spare_worker_id_that_becomes_free_first() {
    let mut world = begin(FleetFault::None, 3, 3);
    world.up(0);
    world.promote(&world.registry.clone());
    world.quiet(20, 5 * MINUTE);
    world.up(1);
    assert_eq!(world.worker(1), Some(6));
    world.cut(1);
    world.start(2);
    let mut answers = Vec::new();
    for _ in 0..2 {
        let call = world.send(2).expect("a call");
        answers.push(world.exchange(2, &call));
    }
    let scale = world.registry.scale();
    let until = scale.point(world.bound(1) + GAP);
    assert_eq!(answers[1], RegistryAnswer::Refused(RegistryRefusal::Quarantine { until }));
    assert!(until < scale.point(world.end_of_quarantine()));
    world.time = scale.time(until) as i64 + SECOND;
    world.beat(2);
    assert_eq!((world.worker(2), world.failed()), (Some(6), None));
}

#[test]
fn after_eight_failovers_in_an_hour_a_restarted_machine_waits_for_the_spare_quarantine() {
    let mut world = begin(FleetFault::None, 4, 3);
    world.up(0);
    let mut given = Vec::new();
    for _ in 0..8 {
        world.promote(&world.registry.clone());
        world.quiet(1, 5 * MINUTE);
        world.off(1);
        world.up(1);
        given.push(world.worker(1));
    }
    assert_eq!(given[..3], [Some(12), Some(15), None]);
    assert!(given[3..].iter().all(Option::is_none));
    world.quiet(20, 5 * MINUTE);
    assert_eq!((world.worker(1), world.failed()), (Some(13), None));
}

/// The exhaustive search has only leases of 12 hours.
#[test]
fn a_quarantine_is_longer_than_every_lease_caught() {
    let schedule = |world: &mut FleetWorld| {
        world.up(0);
        world.quiet(2, MINUTE);
        let state = world.registry.clone();
        world.servers[1].lease = Duration::from_hours(24);
        world.up(1);
        world.quiet(1, MINUTE);
        world.cut(1);
        world.promote(&state);
        world.quiet(3, 7 * HOUR);
        world.turn(world.worker(1).expect("the server has a worker ID"));
        world.up(2);
    };
    assert_eq!(run(FleetFault::None, schedule), None);
    assert_eq!(run(FleetFault::Far, schedule), Some("duplicate"));
}

/// A registry that is put back without a new timeline notices this by the first renewal of a grant that it had renewed since. A claim
/// that comes before is not protected: the newest `seen` of the rows is no older than between two heartbeats.
#[test]
fn a_registry_that_is_put_back_notices_it_by_a_renewal_caught() {
    let schedule = |told: bool| {
        let mut world = begin(FleetFault::None, 3, 3);
        world.up(0);
        let state = world.registry.clone();
        world.beat(0);
        world.up(1);
        world.cut(1);
        world.registry = state;
        if told {
            world.beat(0);
        }
        world.up(2);
        world.failed().map(FleetFailure::kind)
    };
    assert_eq!(schedule(true), None);
    assert_eq!(schedule(false), Some("duplicate"));
}
