//! Schedules, step by step, in which one rule decides. Each one holds with all rules, and fails without the rule.

use std::time::Duration;

use crate::faults::FleetFault;
use crate::steps::{begin, needed};
use crate::world::{GAP, HOUR, MINUTE, SECOND};

#[test]
fn the_quarantine_is_a_floor_for_a_first_claim_that_was_lost_caught() {
    needed(FleetFault::RingFloor, |world| {
        world.up(0);
        world.quiet(3, MINUTE);
        let state = world.registry.clone();
        world.up(1);
        world.quiet(1, MINUTE);
        world.cut(1);
        world.promote(&state);
        world.beat(0);
        world.quiet(5, 6 * HOUR);
        world.turn_to(1);
        world.servers[2].ahead = -HOUR;
        world.up(2);
        assert_eq!(world.worker(2), world.worker(1));
    });
}

#[test]
fn the_spare_slice_is_closed_if_a_timeline_is_missing_caught() {
    needed(FleetFault::Jump, |world| {
        world.up(0);
        world.quiet(2, MINUTE);
        let state = world.registry.clone();
        world.promote(&state);
        world.up(1);
        assert_eq!(world.worker(1), Some(6));
        world.cut(1);
        world.promote(&state);
        world.up(2);
    });
}

#[test]
fn the_spare_slice_is_closed_if_the_state_is_from_within_a_quarantine_caught() {
    needed(FleetFault::Stale, |world| {
        world.up(0);
        world.quiet(2, MINUTE);
        world.promote(&world.registry.clone());
        world.beat(0);
        let end = world.end_of_quarantine();
        world.quiet(3, 6 * HOUR);
        world.time = end - HOUR / 2;
        world.beat(0);
        let state = world.registry.clone();
        world.up(1);
        assert_eq!(world.worker(1), Some(6));
        world.cut(1);
        world.time = end + MINUTE;
        world.promote(&state);
        world.beat(0);
        world.up(2);
    });
}

#[test]
fn the_spare_slice_is_closed_if_a_clock_can_have_been_set_back_into_the_quarantine_caught() {
    needed(FleetFault::StaleMargin, |world| {
        world.up(0);
        world.promote(&world.registry.clone());
        world.beat(0);
        let end = world.end_of_quarantine();
        world.quiet(3, 6 * HOUR);
        // A clock one margin ahead has seen the end of the quarantine. The next one has not.
        world.time = end - GAP + 2 * SECOND;
        world.ahead = GAP;
        world.beat(0);
        world.beat(0);
        world.ahead = 0;
        let state = world.registry.clone();
        world.up(1);
        assert_eq!(world.worker(1), Some(6));
        world.cut(1);
        world.promote(&state);
        world.time += SECOND;
        world.ahead = GAP;
        world.servers[2].ahead = GAP;
        world.beat(0);
        world.up(2);
    });
}

#[test]
fn a_timeline_is_settled_when_no_clock_can_be_within_the_spare_quarantine_caught() {
    let schedule = |fault| {
        let mut world = begin(fault, 3, 5);
        world.up(0);
        world.promote(&world.registry.clone());
        world.beat(0);
        let until = world.registry.fleet.spare_until;
        world.time = world.registry.scale().time(until) as i64 + 2 * SECOND;
        world.ahead = GAP;
        world.beat(0);
        world.beat(0);
        world.ahead = 0;
        let state = world.registry.clone();
        world.up(1);
        world.up(2);
        assert_eq!((world.worker(1), world.worker(2)), (Some(6), Some(7)));
        world.cut(2);
        world.promote(&state);
        world.time += SECOND;
        world.ahead = GAP;
        world.servers[3].ahead = GAP;
        world.beat(0);
        world.up(3);
        world.failed().map(crate::invariants::FleetFailure::kind)
    };
    assert_eq!(schedule(FleetFault::None), None);
    assert_eq!(schedule(FleetFault::CalmMargin), Some("duplicate"));
}

#[test]
fn no_timeline_is_settled_after_a_renewal_told_of_a_loss_caught() {
    let schedule = |fault| {
        let mut world = begin(fault, 3, 5);
        world.up(0);
        world.promote(&world.registry.clone());
        world.beat(0);
        let state = world.registry.clone();
        world.up(1);
        world.up(2);
        assert_eq!((world.worker(1), world.worker(2)), (Some(6), Some(7)));
        world.cut(2);
        world.quiet(2, MINUTE);
        // The registry's volume is set back, so that PostgreSQL does not change the timeline.
        world.registry = state;
        world.beat(0);
        world.beat(0);
        world.up(3);
        world.failed().map(crate::invariants::FleetFailure::kind)
    };
    assert_eq!(schedule(FleetFault::None), None);
    assert_eq!(schedule(FleetFault::ToldSettled), Some("duplicate"));
}

#[test]
fn the_first_renewal_in_a_life_has_no_margin_caught() {
    needed(FleetFault::FirstMargin, |world| {
        world.up(0);
        world.quiet(2, MINUTE);
        world.cut(0);
        let state = world.registry.clone();
        // By a clock that is one margin ahead, the bound and a margin have passed. By the next one, only the bound has.
        world.time = world.bound(0) + 2 * SECOND;
        world.ahead = GAP;
        world.servers[1].ahead = GAP;
        world.turn_to(0);
        world.up(1);
        assert_eq!(world.worker(1), world.worker(0));
        world.ahead = 0;
        world.promote(&state);
        world.join(0);
        world.beat(0);
    });
}

#[test]
fn a_new_life_raises_no_bound_caught() {
    needed(FleetFault::Raised, |world| {
        world.up(0);
        world.quiet(2, MINUTE);
        world.cut(0);
        // Another server is seen when the bound has just passed.
        world.time = world.bound(0) + SECOND;
        world.up(3);
        let state = world.registry.clone();
        world.time += GAP + SECOND;
        world.turn_to(0);
        world.up(1);
        assert_eq!(world.worker(1), world.worker(0));
        world.cut(1);
        world.promote(&state);
        world.beat(3);
        world.join(0);
        world.beat(0);
    });
}

#[test]
fn a_spare_worker_id_stays_with_a_holder_that_renewed_at_the_last_moment_caught() {
    needed(FleetFault::SpareMargin, |world| {
        world.up(0);
        world.fill_ring();
        world.promote(&world.registry.clone());
        world.up(1);
        assert_eq!(world.worker(1), Some(6));
        world.quiet(64, 25 * MINUTE);
        world.cut(1);
        // The last call that is not lost is seen by a clock that is one margin ahead.
        world.time = world.bound(1) + GAP - SECOND;
        world.ahead = GAP;
        world.beat(0);
        world.beat(0);
        world.ahead = 0;
        let state = world.registry.clone();
        world.join(1);
        world.beat(1);
        world.cut(1);
        world.time += 3 * SECOND;
        world.promote(&state);
        world.up(2);
    });
}

#[test]
fn an_expired_holder_of_a_spare_worker_id_is_not_renewed_caught() {
    for fault in [FleetFault::Expired, FleetFault::ExpiredByBoth] {
        needed(fault, |world| {
            world.up(0);
            world.fill_ring();
            world.promote(&world.registry.clone());
            world.up(1);
            assert_eq!(world.worker(1), Some(6));
            world.quiet(64, 25 * MINUTE);
            world.cut(1);
            world.quiet(2, 50 * MINUTE);
            let state = world.registry.clone();
            world.join(1);
            // By the server's own clock, the bound and a margin have not passed.
            world.servers[1].ahead = -70 * MINUTE;
            world.beat(1);
            world.beat(1);
            world.beat(1);
            world.cut(1);
            world.promote(&state);
            world.up(2);
        });
    }
}

#[test]
fn a_quarantine_never_ends_earlier_caught() {
    let schedule = |fault| {
        let mut world = begin(fault, 3, 4);
        world.up(0);
        // The second host's clock is one margin behind the first one's.
        let ends = [GAP, 0].map(|ahead| {
            world.ahead = ahead;
            world.promote(&world.registry.clone());
            world.beat(0);
            world.registry.fleet.quarantine_until
        });
        assert_eq!(world.failed(), None);
        ends[0] <= ends[1]
    };
    assert!(schedule(FleetFault::None));
    assert!(!schedule(FleetFault::Earlier));
}

#[test]
fn a_quarantine_is_longer_than_every_lease_caught() {
    needed(FleetFault::Far, |world| {
        world.up(0);
        world.quiet(2, MINUTE);
        let state = world.registry.clone();
        world.servers[1].lease = Duration::from_hours(24);
        world.up(1);
        world.quiet(1, MINUTE);
        world.cut(1);
        world.promote(&state);
        world.quiet(3, 7 * HOUR);
        world.turn_to(1);
        world.up(2);
    });
}

#[test]
fn a_new_layout_begins_above_a_lost_grant_caught() {
    needed(FleetFault::LayoutQuarantine, |world| {
        world.start(0);
        world.beat(0);
        world.off(0);
        let state = world.registry.clone();
        world.up(1);
        world.quiet(1, MINUTE);
        world.cut(1);
        world.promote(&state);
        world.change_layout();
        world.servers[2].format = world.formats[1];
        world.start(2);
        world.quiet(8, HOUR);
    });
}

#[test]
fn open_returns_to_the_quarantine_before_caught() {
    needed(FleetFault::OpenAll, |world| {
        world.up(0);
        world.quiet(3, MINUTE);
        let state = world.registry.clone();
        world.up(1);
        world.quiet(1, MINUTE);
        world.cut(1);
        world.promote(&state);
        world.beat(0);
        world.quiet(5, 6 * HOUR);
        world.promote(&world.registry.clone());
        world.beat(0);
        world.open();
        assert!(!world.registry.in_quarantine(world.now()));
        world.turn_to(1);
        world.servers[2].ahead = -HOUR;
        world.up(2);
        assert_eq!(world.worker(2), world.worker(1));
    });
}

#[test]
fn what_a_renewal_tells_of_a_registry_without_a_new_timeline_begins_a_life_caught() {
    needed(FleetFault::Told, |world| {
        world.up(0);
        let state = world.registry.clone();
        world.up(1);
        world.up(2);
        world.cut(2);
        // The registry's volume is set back, so that PostgreSQL does not change the timeline.
        world.registry = state;
        world.beat(1);
        assert_eq!(world.worker(1), Some(1));
        world.turn_to(2);
        world.up(3);
    });
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
        world.failed().map(crate::invariants::FleetFailure::kind)
    };
    assert_eq!(schedule(true), None);
    assert_eq!(schedule(false), Some("duplicate"));
}

#[test]
fn the_spare_slice_is_closed_if_a_renewal_tells_of_a_lost_life_caught() {
    needed(FleetFault::ToldOpen, |world| {
        world.up(0);
        let (state, source) = (world.registry.clone(), world.source);
        world.promote(&state);
        world.beat(0);
        world.up(1);
        assert_eq!(world.worker(1), Some(6));
        world.cut(1);
        (world.registry, world.source) = (state, source);
        world.beat(0);
        world.up(2);
    });
}
