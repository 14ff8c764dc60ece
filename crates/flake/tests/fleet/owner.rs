//! The owner of the registry, who reserves worker IDs for databases that the registry does not know.

use flake::fleet::{Grant, Moment, Point, RegistryRow, Ring, Uuid};
use flake::{Mark, Node};

use crate::faults::{self, FleetFault};
use crate::world::FleetWorld;

/// Who issues the IDs of a reserved worker ID.
fn database(node: Node) -> Uuid {
    Uuid(u128::MAX - u128::from(node.worker))
}

impl FleetWorld {
    /// The owner reserves a worker ID outside a quarantine, and its database issues all IDs from the start that the registry tells.
    pub fn reserve(&mut self, worker: usize) {
        let ring = Ring::of(&self.registry.fleet.format.layout);
        let node = Node { datacenter: 0, worker: worker as u32 % ring.spare };
        let moment = self.moment();
        let mut after = self.registry.clone();
        let start = faults::reserve(self.fault, &mut after, &moment, node, database(node));
        let Some(start) = start.filter(|_| !after.in_quarantine(moment.now) && !self.reserved.contains(&node)) else {
            return;
        };
        self.remember();
        self.noting(&moment, |world| world.registry = after);
        let grant = Grant { node, start, bound: Point::MAX, used: Mark::NOTHING_ISSUED };
        self.checks.granted(database(node), false, &grant);
        self.reserved.push(node);
    }

    /// The owner reserves again what the registry has lost, before it answers a server.
    pub fn keep_reservations(&mut self, moment: &Moment) {
        for node in &self.reserved {
            let kept = self.registry.rows.get(node).is_some_and(RegistryRow::is_reserved);
            if !kept && !matches!(self.fault, FleetFault::Reserved | FleetFault::ReservedOnce) {
                self.registry.reserve(moment, *node, database(*node));
            }
        }
    }

    /// The database issues no more IDs, and the owner ends the reservation.
    pub fn release(&mut self, pick: usize) {
        if self.reserved.is_empty() {
            return;
        }
        let node = self.reserved[pick % self.reserved.len()];
        let moment = self.moment();
        self.remember();
        let released = self.noting(&moment, |world| {
            world.keep_reservations(&moment);
            world.registry.release(&moment, node)
        });
        // A registry that has lost the reservation begins above what it can have lost.
        if released || self.registry.in_quarantine(moment.now) {
            self.reserved.retain(|reserved| *reserved != node);
            self.checks.ended(database(node), moment.now);
            // A registry that loses a release has the reservation again, and takes the worker ID from a server that has it since.
            self.history.clear();
        }
    }
}
