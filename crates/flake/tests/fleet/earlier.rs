//! The version of the registry before the short leases of spare worker IDs and the slices, and the upgrade from it.

use flake::fleet::{
    Call, ClaimRequest, FIRST_GRANT, Moment, Point, Registry, RegistryAnswer, RegistryRefusal, RegistryRequest,
    RegistryRow, Ring,
};
use flake::{Node, Part};

use crate::faults::FleetFault;
use crate::world::FleetWorld;

/// Makes the registry one of the version before. A state keeps its version, because the functions are in the same database. A spare
/// quarantine that never ends marks the version. Claims begin at a worker ID, as if the ones below it had been granted long ago.
pub fn downgrade(registry: &mut Registry, turn: u32) {
    registry.fleet.spare_until = Point::MAX;
    registry.fleet.spare_before = Point::ZERO;
    registry.fleet.settled = None;
    let turn = turn.min(spare(registry) - 1);
    for datacenter in 0..=registry.fleet.format.layout.max(Part::Datacenter) as u32 {
        registry.cursors.entry(datacenter).or_default().ring = turn;
    }
}

pub const fn is_earlier(registry: &Registry) -> bool {
    registry.fleet.spare_until.id() == Point::MAX.id()
}

/// The first spare worker ID: the last eighth of the worker IDs was spare.
const fn spare(registry: &Registry) -> u32 {
    let end = Ring::of(&registry.fleet.format.layout).end;
    end - end / 8
}

impl FleetWorld {
    /// The registry is upgraded, if it has the version before.
    pub fn upgrade(&mut self) {
        let moment = self.moment();
        self.remember();
        self.noting(&moment, |world| upgrade(world.fault, &mut world.registry, &moment));
    }
}

/// The upgrade of a registry, as `registry/upgrade_end.sql`.
fn upgrade(fault: FleetFault, registry: &mut Registry, moment: &Moment) {
    if !is_earlier(registry) {
        return;
    }
    let scale = registry.scale();
    let fleet = &mut registry.fleet;
    fleet.spare_until = moment.now.plus(if fault == FleetFault::UpgradeNear { scale.near() } else { scale.far() });
    if fault == FleetFault::UpgradeSettled {
        fleet.settled = Some(fleet.source.timeline);
    } else {
        fleet.newest_seen = Point::ZERO;
    }
    if fault != FleetFault::UpgradeUnnoticed {
        // Begins a life if the registry has moved.
        let request = RegistryRequest::Hello { serial: 0 };
        registry.call(moment, &Call { fleet: None, format: registry.fleet.format, request });
    }
    if fault != FleetFault::UpgradeOpen {
        registry.fleet.spare_closed = true;
    }
    registry.cursors.clear();
}

/// A claim by the rules of the version before: outside a quarantine, the ring has seven eighths of the worker IDs. During it, the last
/// eighth is granted.
pub fn claim(registry: &mut Registry, now: Point, claim: &ClaimRequest) -> RegistryAnswer {
    let datacenter = claim.datacenter;
    let same = |node: &Node, row: &RegistryRow| {
        node.datacenter == datacenter && row.nonce == claim.nonce && row.holder == claim.holder
    };
    if let Some((node, row)) = registry.rows.iter().find(|(node, row)| same(node, row)) {
        return claimed(*node, row);
    }
    let fleet = registry.fleet;
    if claim.life != fleet.life {
        return RegistryAnswer::Refused(RegistryRefusal::Life);
    }
    let scale = registry.scale();
    let quarantined = registry.in_quarantine(now);
    let wait = RegistryRefusal::Quarantine { until: fleet.quarantine_until.plus(scale.margin()) };
    if quarantined && fleet.spare_closed {
        return RegistryAnswer::Refused(wait);
    }
    let (spare, end) = (spare(registry), Ring::of(&fleet.format.layout).end);
    let cursor = registry.cursors.entry(datacenter).or_default();
    let (begin, end, next, floor) = match quarantined {
        true => (spare, end, &mut cursor.spare, fleet.quarantine_before),
        false => (0, spare, &mut cursor.ring, fleet.quarantine_until),
    };
    let floor = floor.max(fleet.floor);
    let above = |point: Point| if point == Point::ZERO { point } else { point.plus(scale.margin()) };
    let start = |worker| {
        let bound = registry.rows.get(&Node { datacenter, worker }).map(|row| row.bound);
        let renewed = |bound: Point| !bound.plus(scale.margin().twice()).passed(fleet.newest_seen);
        let start = above(bound.unwrap_or(Point::ZERO).max(floor));
        (start.passed(now.min(claim.clock)) && !(quarantined && bound.is_some_and(renewed))).then_some((worker, start))
    };
    let mut workers = (begin + *next..end).chain(begin..begin + *next);
    let Some((worker, start)) = workers.find_map(start) else {
        return RegistryAnswer::Refused(if quarantined { wait } else { RegistryRefusal::Full });
    };
    *next = if worker + 1 == end { 0 } else { worker + 1 - begin };
    let node = Node { datacenter, worker };
    let row = RegistryRow {
        holder: claim.holder,
        nonce: claim.nonce,
        count: registry.rows.get(&node).map_or(0, |row| row.count) + 1,
        life: fleet.life,
        start,
        bound: now.plus(scale.span(FIRST_GRANT)),
        seen: now,
    };
    registry.rows.insert(node, row);
    claimed(node, &row)
}

fn claimed(node: Node, row: &RegistryRow) -> RegistryAnswer {
    RegistryAnswer::Claimed {
        worker: node.worker,
        nonce: row.nonce,
        count: row.count,
        life: row.life,
        start: row.start,
        bound: row.bound,
    }
}
