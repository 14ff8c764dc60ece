//! Grants, and the identity of their holder.

use flake::fleet::{Grant, MemberIdentity, Point, Scale};
use flake::{IdFormat, Issuer, Mark, Nanos, Node};

use super::machine::{HOUR, MachineClocks};

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

/// A grant of worker ID 5 from one hour before the machine's clock to `lasts` after it, and the issuer of its IDs.
pub fn granted(machine: &mut MachineClocks, lasts: Nanos) -> (Grant, Issuer) {
    let format = twitter();
    let (start, bound) = (point(format, machine.wall - HOUR), point(format, machine.wall + lasts));
    let grant = Grant { node: node(5), start, bound, used: Mark::NOTHING_ISSUED };
    (grant, Issuer::of_grant(&member(format), &grant, machine.read()).unwrap())
}

/// Checks that IDs are in ascending order, without a duplicate.
pub fn assert_ascends(ids: &[i64]) {
    assert!(ids.is_sorted_by(|a, b| a < b), "the IDs do not ascend");
}
