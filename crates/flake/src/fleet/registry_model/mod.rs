//! The registry's decisions. This is the reference model for the functions in the registry's database. It is compiled
//! only for tests.

use std::collections::BTreeMap;

use crate::fleet::{Call, MAX_LEASE, MIN_LEASE, Point, RegistryAnswer, RegistryRefusal, RegistryRequest, Scale, Uuid};
use crate::{IdFormat, Node};

mod claim;
mod quarantine;
mod renew;
mod reserve;
mod rows;
mod tag;

pub use rows::{Cursor, Fleet, RegistryRow, Source};
pub use tag::{Begun, Kept, LAST_NUMBER, NoBlock, ReportAnswer, Skip, TagBlock, TagRecord, Tags, Top, UNKNOWN_STEPS};

/// The values that the registry's server adds to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Moment {
    /// The time of the registry's wall clock.
    pub now: Point,
    /// The server that runs the registry.
    pub source: Source,
    /// A new nonce. Only `hello` uses it.
    pub nonce: Uuid,
}

/// A registry: its records, and the decisions that depend only on the records, the call and the [`Moment`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Registry {
    /// The record about the fleet.
    pub fleet: Fleet,
    /// The records of all worker IDs that have ever been granted.
    pub rows: BTreeMap<Node, RegistryRow>,
    /// The positions in the rings of the datacenters, by datacenter ID. A datacenter that is missing here has the
    /// default position.
    pub cursors: BTreeMap<u32, Cursor>,
}

impl Registry {
    /// Returns the registry of a new fleet.
    pub const fn new(id: Uuid, format: IdFormat, source: Source) -> Registry {
        let fleet = Fleet {
            id,
            format,
            life: 1,
            source,
            quarantine_until: Point::ZERO,
            quarantine_before: Point::ZERO,
            spare_until: Point::ZERO,
            spare_before: Point::ZERO,
            newest_seen: Point::ZERO,
            settled: None,
            floor: Point::ZERO,
            spare_closed: false,
        };
        Registry { fleet, rows: BTreeMap::new(), cursors: BTreeMap::new() }
    }

    /// Answers a call and stores the changes on which the answer is based. The fleet, the layout, the ranges of the
    /// numbers and the lease are checked first. If one of them is wrong, the call changes nothing.
    pub fn call(&mut self, moment: &Moment, call: &Call) -> RegistryAnswer {
        if let Some(refusal) = self.refusal(call) {
            return RegistryAnswer::Refused(refusal);
        }
        self.compare_source(moment);
        match &call.request {
            RegistryRequest::Hello { .. } => {
                RegistryAnswer::Hello { fleet: self.fleet.id, life: self.fleet.life, nonce: moment.nonce }
            }
            RegistryRequest::Claim(claim) => self.claim(moment.now, claim).unwrap_or_else(RegistryAnswer::Refused),
            RegistryRequest::Renew(renew) => self.renew(moment.now, renew),
        }
    }

    /// Ends a quarantine. The administrator guarantees that nothing has been lost since the quarantine began. The floor
    /// is then the end of the previous quarantine. Returns false if no quarantine was ended, either because there was
    /// none, or because the floor of a layout change has not passed.
    pub fn open(&mut self, moment: &Moment) -> bool {
        self.compare_source(moment);
        if !self.in_quarantine(moment.now) {
            return false;
        }
        self.fleet.quarantine_until = self.fleet.quarantine_before;
        self.fleet.spare_closed = false;
        !self.in_quarantine(moment.now)
    }

    /// Changes the layout or the epoch of the fleet and begins a new life. `moment.now` is a point of the previous
    /// layout. Returns the new floor. No ID below the floor is granted with the new layout. Claims are refused until
    /// the floor and one margin have passed in the new layout. This can take a long time if the IDs of the new layout
    /// are lower.
    pub fn change_layout(&mut self, moment: &Moment, format: IdFormat) -> Point {
        self.compare_source(moment);
        let fleet = &self.fleet;
        let granted = self.rows.values().map(|row| row.bound).max().unwrap_or(Point::ZERO);
        // Lost grants end before the quarantine does.
        let top = granted.max(fleet.quarantine_until).max(fleet.floor);
        let (old, new) = (self.scale(), Scale::new(format));
        let floor = new.tick_above(top);
        // These points represent times of the registry's clock, so they can be converted. No other code compares points
        // of different layouts.
        let convert = |point| if point == Point::ZERO { point } else { new.point(old.time(point) as i64) };
        self.fleet = Fleet {
            format,
            life: fleet.life + 1,
            quarantine_until: convert(fleet.quarantine_until),
            quarantine_before: convert(fleet.quarantine_before),
            spare_until: convert(fleet.spare_until),
            spare_before: convert(fleet.spare_before),
            newest_seen: convert(fleet.newest_seen),
            floor,
            ..*fleet
        };
        // The worker IDs and bounds of the previous layout have no meaning in the new one. The floor replaces them.
        self.rows.clear();
        self.cursors.clear();
        floor
    }

    /// Returns the scale for the fleet's points.
    pub const fn scale(&self) -> Scale {
        Scale::new(self.fleet.format)
    }

    fn refusal(&self, call: &Call) -> Option<RegistryRefusal> {
        if call.fleet.is_some_and(|fleet| fleet != self.fleet.id) {
            return Some(RegistryRefusal::ForeignFleet);
        }
        if call.format != self.fleet.format {
            return Some(RegistryRefusal::Layout);
        }
        let (datacenter, worker, lease) = match call.request {
            RegistryRequest::Hello { .. } => return None,
            RegistryRequest::Claim(claim) => (claim.datacenter, 0, claim.lease),
            RegistryRequest::Renew(renew) => (renew.datacenter, renew.worker, renew.lease),
        };
        if call.format.layout.stamp(Node { datacenter, worker }).is_err() {
            return Some(RegistryRefusal::Range);
        }
        (lease < MIN_LEASE || lease > MAX_LEASE).then_some(RegistryRefusal::Lease)
    }
}
