//! Reservations: worker IDs for databases that do not contact the registry because they have no library.
//!
//! A reservation is a row whose bound is the highest point, so the bound never passes. Every claim skips the worker ID,
//! regardless of quarantines, and no renewal by a different holder replaces the row. Spare worker IDs cannot be
//! reserved, because a failover can lose the reservation. After such a failover, a server could get the spare worker ID
//! immediately. It could get a worker ID from the ring only after the quarantine.

use crate::Node;

use crate::fleet::{Point, Ring, Uuid};

use super::{Moment, Registry, RegistryRow};

impl Registry {
    /// Reserves a worker ID and returns the lowest ID that its database may issue. Reserves nothing and returns `None`
    /// if the worker ID is spare or if a server may hold it. `moment.nonce` becomes the nonce of the row.
    pub fn reserve(&mut self, moment: &Moment, node: Node, holder: Uuid) -> Option<Point> {
        if node.worker >= Ring::of(&self.fleet.format.layout).spare {
            return None;
        }
        self.compare_source(moment);
        let row = self.rows.get(&node).copied();
        let bound = row.map_or(Point::ZERO, |row| row.bound);
        if row.is_some_and(|row| row.is_reserved()) {
            return row.map(|row| row.start);
        }
        if row.is_some() && !bound.plus(self.scale().margin()).passed(moment.now) {
            return None;
        }
        let start = self.above(bound.max(self.fleet.quarantine_until).max(self.fleet.floor));
        let row = RegistryRow {
            holder,
            nonce: moment.nonce,
            count: row.map_or(0, |row| row.count).saturating_add(1),
            life: self.fleet.life,
            start,
            bound: Point::MAX,
            seen: moment.now,
        };
        self.rows.insert(node, row);
        Some(start)
    }

    /// Ends a reservation. The database that uses it must have stopped issuing IDs. Returns false if the worker ID is
    /// not reserved.
    pub fn release(&mut self, moment: &Moment, node: Node) -> bool {
        self.compare_source(moment);
        let margin = self.scale().margin();
        let Some(row) = self.rows.get_mut(&node).filter(|row| row.is_reserved()) else { return false };
        row.bound = row.start.max(moment.now).plus(margin);
        row.seen = moment.now;
        true
    }
}
