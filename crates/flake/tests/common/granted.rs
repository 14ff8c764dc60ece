//! Grants, and the identity of their holder.

use flake::fleet::{Grant, MemberIdentity, Point, Scale};
use flake::{IdFormat, Mark, Nanos, Node};

use super::machine::{HOUR, MachineClocks, SECOND};

/// The default layout and epoch.
pub fn twitter() -> IdFormat {
    IdFormat::parse("41:10:12").unwrap()
}

/// A node with this worker ID.
pub fn node(worker: u32) -> Node {
    Node { datacenter: 0, worker }
}

/// A member of a fleet with this format.
pub fn member(format: IdFormat) -> MemberIdentity {
    MemberIdentity { fleet: None, format, datacenter: 0 }
}

/// The point of a time of the wall clock.
pub fn point(format: IdFormat, wall: Nanos) -> Point {
    Scale::new(format).point((wall / 1_000) as i64)
}

/// A grant of worker ID 5 from one hour before the machine's clock to one second after it.
pub fn grant(format: IdFormat, machine: &MachineClocks) -> Grant {
    Grant {
        node: node(5),
        start: point(format, machine.wall - HOUR),
        bound: point(format, machine.wall + SECOND),
        used: Mark::NOTHING_ISSUED,
    }
}

/// Checks that IDs are in ascending order, without a duplicate.
pub fn assert_ascends(ids: &[i64]) {
    assert!(ids.is_sorted_by(|a, b| a < b), "the IDs do not ascend");
}
