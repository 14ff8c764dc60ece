//! Reserved worker IDs, step by step.

use flake::Node;
use flake::fleet::Uuid;

use crate::faults::FleetFault;
use crate::steps::run;
use crate::world::{FleetWorld, HOUR, LONG, MINUTE};

/// Until the quarantine ends, no server gets the worker ID, even if nobody reserves it again.
#[test]
fn a_lost_reservation_is_not_granted_during_the_quarantine() {
    let schedule = |world: &mut FleetWorld| {
        world.up(0);
        world.quiet(2, MINUTE);
        let state = world.registry.clone();
        world.reserve(1);
        world.promote(&state);
        world.beat(0);
        let end = world.end_of_quarantine();
        world.turn(1);
        while world.time < end - HOUR {
            world.up(1);
            world.up(2);
            world.quiet(1, HOUR / 2);
        }
        assert!(world.time > crate::world::BEGIN + LONG - 2 * HOUR);
    };
    assert_eq!(run(FleetFault::ReservedOnce, schedule), None);
}

#[test]
fn a_worker_id_in_use_or_a_spare_one_is_not_reserved() {
    let schedule = |world: &mut FleetWorld| {
        world.up(0);
        let moment = world.moment();
        for worker in [0, 6, 7] {
            let node = Node { datacenter: 0, worker };
            assert_eq!(world.registry.reserve(&moment, node, Uuid(1)), None, "{worker}");
        }
        // The holder is gone.
        world.off(0);
        world.time += 13 * HOUR;
        world.reserve(0);
        assert_eq!(world.reserved.len(), 1);
        // The registry renews nobody else.
        let (moment, node) = (world.moment(), world.reserved[0]);
        assert_eq!(world.registry.reserve(&moment, node, Uuid(1)), Some(world.registry.rows[&node].start));
    };
    assert_eq!(run(FleetFault::None, schedule), None);
}

#[test]
fn a_released_worker_id_begins_above_what_its_database_has_issued() {
    let schedule = |world: &mut FleetWorld| {
        world.reserve(0);
        world.time += HOUR;
        world.release(0);
        assert!(world.reserved.is_empty());
        world.turn(0);
        world.up(0);
        assert_eq!(world.worker(0), Some(1), "the margins have not passed");
        world.time += 21 * MINUTE;
        world.turn(0);
        world.up(1);
        assert_eq!(world.worker(1), Some(0));
    };
    assert_eq!(run(FleetFault::None, schedule), None);
}
