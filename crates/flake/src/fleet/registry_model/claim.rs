//! Claims.

use core::ops::Range;

use crate::Node;

use crate::fleet::{ClaimRequest, FIRST_GRANT, Point, RegistryAnswer, RegistryRefusal, Ring};

use super::{Registry, RegistryRow};

/// The worker IDs that a claim can currently get.
struct Offer {
    /// The worker IDs, in the order in which they are examined.
    workers: Vec<Range<u32>>,
    /// All grants begin one margin above this point.
    floor: Point,
    /// True if a worker ID whose bound has passed may still be held, because its holder's renewal was lost.
    tails: bool,
}

impl Registry {
    pub(super) fn claim(&mut self, now: Point, claim: &ClaimRequest) -> Result<RegistryAnswer, RegistryRefusal> {
        if let Some((node, row)) = self.claimed(claim) {
            return Ok(answer(node, row));
        }
        if claim.life != self.fleet.life {
            return Err(RegistryRefusal::Life);
        }
        let offer = self.offer(now, claim.datacenter);
        let found = self.free(claim.datacenter, &offer, now, now.min(claim.clock));
        let (worker, start) = found.ok_or_else(|| self.why_none(now, claim, &offer))?;
        // Otherwise, the grant could not be renewed, and the server would use up a worker ID every two margins. One of
        // the clocks is wrong.
        let reach = self.lease(worker, claim.lease);
        if claim.clock.plus(reach).plus(self.scale().margin()).passed(now) {
            return Err(RegistryRefusal::Clock { until: now.minus(reach).minus(self.scale().margin()) });
        }
        let node = Node { datacenter: claim.datacenter, worker };
        let row = RegistryRow {
            holder: claim.holder,
            nonce: claim.nonce,
            // A forged call may have raised the count. If the new count were above the highest count, the registry
            // would refuse the renewals.
            count: self.rows.get(&node).map_or(0, |row| row.count.min(self.highest_count(now))) + 1,
            life: self.fleet.life,
            start,
            bound: now.plus(self.scale().span(FIRST_GRANT)),
            seen: now,
        };
        self.rows.insert(node, row);
        self.move_on(node);
        Ok(answer(node, &row))
    }

    /// Returns the row of a claim that is repeated because its answer was lost.
    fn claimed(&self, claim: &ClaimRequest) -> Option<(Node, &RegistryRow)> {
        let node = |worker| Node { datacenter: claim.datacenter, worker };
        let mut rows = self.rows.range(node(0)..=node(u32::MAX));
        rows.find(|(_, row)| row.nonce == claim.nonce && row.holder == claim.holder).map(|(node, row)| (*node, row))
    }

    /// Returns the worker IDs that a claim can currently get. Outside a quarantine, these are the worker IDs in the
    /// ring. During a quarantine, these are the common spare worker IDs. While the spare worker IDs are also in
    /// quarantine, the slice of the timeline is added.
    fn offer(&self, now: Point, datacenter: u32) -> Offer {
        let fleet = &self.fleet;
        let ring = Ring::of(&fleet.format.layout);
        let cursor = self.cursors.get(&datacenter).copied().unwrap_or_default();
        let from = |begin: u32, end, distance| vec![begin + distance..end, begin..begin + distance];
        if !self.in_quarantine(now) {
            let floor = fleet.quarantine_until.max(fleet.floor);
            return Offer { workers: from(0, ring.spare, cursor.ring), floor, tails: false };
        }
        let common = from(ring.spare, ring.sliced, cursor.spare);
        let floor = fleet.quarantine_before.max(fleet.floor);
        if self.end_of_spare_quarantine().passed(now) {
            return Offer { workers: common, floor: floor.max(fleet.spare_until), tails: false };
        }
        let mut workers = if fleet.spare_closed { Vec::new() } else { common };
        let timeline = fleet.source.timeline;
        if fleet.settled.is_some_and(|settled| timeline - settled <= ring.slices) {
            workers.push(ring.slice(timeline));
        }
        Offer { workers, floor: floor.max(fleet.spare_before), tails: true }
    }

    /// Returns the first free worker ID of an offer whose start is below `latest`, together with the start.
    fn free(&self, datacenter: u32, offer: &Offer, now: Point, latest: Point) -> Option<(u32, Point)> {
        // Without this check, a claim would examine every worker ID, of which there are many in a wide field.
        if !self.above(offer.floor).passed(latest) {
            return None;
        }
        let start =
            |worker| self.start(Node { datacenter, worker }, offer).filter(|start| start.passed(latest.min(now)));
        offer.workers.iter().cloned().flatten().find_map(|worker| start(worker).map(|start| (worker, start)))
    }

    /// Returns the start of a new grant of a worker ID, or `None` if its holder might have renewed its grant and the
    /// renewal was lost.
    fn start(&self, node: Node, offer: &Offer) -> Option<Point> {
        let row = self.rows.get(&node);
        let bound = row.map_or(Point::ZERO, |row| row.bound);
        // A holder may have renewed its grant shortly before the loss, and the clock at that time may have been one
        // margin behind this one.
        let margins = self.scale().margin().twice();
        let renewed = offer.tails && row.is_some() && !bound.plus(margins).passed(self.fleet.newest_seen);
        (!renewed).then(|| self.above(bound.max(offer.floor)))
    }

    /// Returns the lowest start above a point. This is 0 if nothing has been granted or lost.
    pub(super) const fn above(&self, point: Point) -> Point {
        if point.id() == 0 { point } else { point.plus(self.scale().margin()) }
    }

    /// Returns the point after which the first worker ID of an offer becomes free if all of them are in use.
    fn first_free(&self, datacenter: u32, offer: &Offer) -> Option<Point> {
        let offered = |node: &Node| {
            node.datacenter == datacenter && offer.workers.iter().any(|workers| workers.contains(&node.worker))
        };
        let bounds = self.rows.iter().filter(|(node, _)| offered(node)).map(|(_, row)| row.bound);
        bounds.min().map(|bound| self.above(bound.max(offer.floor)))
    }

    /// Returns the reason why no worker ID is available for a claim, and when one will be. If there are several
    /// reasons, returns the one that lasts longest.
    fn why_none(&self, now: Point, claim: &ClaimRequest, offer: &Offer) -> RegistryRefusal {
        if let Some((_, start)) = self.free(claim.datacenter, offer, now, now) {
            return RegistryRefusal::Clock { until: start };
        }
        let ring = Ring::of(&self.fleet.format.layout);
        let quarantine = match offer.tails && ring.spare < ring.end {
            true => self.end_of_spare_quarantine(),
            // A common spare worker ID can become free before the quarantine ends.
            false => self
                .first_free(claim.datacenter, offer)
                .map_or(self.end_of_quarantine(), |free| free.min(self.end_of_quarantine())),
        };
        let (quarantined, floor) = (self.in_quarantine(now), self.above(self.fleet.floor));
        if !floor.passed(now) && (!quarantined || floor >= quarantine) {
            RegistryRefusal::Floor { until: floor }
        } else if quarantined {
            RegistryRefusal::Quarantine { until: quarantine }
        } else {
            RegistryRefusal::Full
        }
    }

    /// Makes the next claim begin with the worker ID after this one.
    fn move_on(&mut self, node: Node) {
        let ring = Ring::of(&self.fleet.format.layout);
        let cursor = self.cursors.entry(node.datacenter).or_default();
        let next = node.worker + 1;
        if next <= ring.spare {
            cursor.ring = if next == ring.spare { 0 } else { next };
        } else if next <= ring.sliced {
            cursor.spare = if next == ring.sliced { 0 } else { next - ring.spare };
        }
    }
}

fn answer(node: Node, row: &RegistryRow) -> RegistryAnswer {
    RegistryAnswer::Claimed {
        worker: node.worker,
        nonce: row.nonce,
        count: row.count,
        life: row.life,
        start: row.start,
        bound: row.bound,
    }
}
