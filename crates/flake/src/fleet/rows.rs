//! The records of the reference model of the registry.

use crate::IdFormat;

use super::{Point, Uuid};

/// The server that runs the registry: what PostgreSQL changes when the registry's data comes from a backup or a standby.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Source {
    /// PostgreSQL's system identifier.
    pub system: u64,
    /// PostgreSQL's timeline.
    pub timeline: u32,
    /// The tables that contain the registry: their OIDs, the OID of their database, and a mark that shows whether their
    /// rows were restored.
    pub tables: u64,
}

/// The registry's one record about the fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fleet {
    /// The identity of the fleet.
    pub id: Uuid,
    /// The fleet's layout and epoch.
    pub format: IdFormat,
    /// The number of the registry's life, from 1. It increases each time the registry might have lost changes.
    pub life: u64,
    /// The server that ran the registry in this life.
    pub source: Source,
    /// The end of the last quarantine, and the floor of the ring. [`Point::ZERO`] if there was no quarantine.
    pub quarantine_until: Point,
    /// The floor of the spare worker IDs, and what `open` restores: the end of the quarantine before the current one.
    pub quarantine_before: Point,
    /// The end of the last quarantine of the spare worker IDs. [`Point::ZERO`] if there was none.
    pub spare_until: Point,
    /// The value of `spare_until` when the registry was last known to be calm.
    pub spare_before: Point,
    /// The latest `seen` of all rows when the registry was last known to be calm.
    pub newest_seen: Point,
    /// The timeline on which the registry was last known to be calm: of every spare worker ID that an earlier timeline granted and
    /// that the rows do not show, the bound had passed. `None` if that is not known of any timeline of this system.
    pub settled: Option<u32>,
    /// The floor of the last change of the layout or the epoch. Every number that may have been granted before the
    /// change is below it. [`Point::ZERO`] if there was no change. No new grant begins below the floor, and no grant
    /// that began below it is renewed.
    pub floor: Point,
    /// True if the registry may have granted the common spare worker IDs to other servers in the part that it has lost.
    pub spare_closed: bool,
}

/// The registry's record about one worker ID. Only a change of the layout deletes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RegistryRow {
    /// The current or last holder.
    pub holder: Uuid,
    /// The nonce of the last claim or renewal.
    pub nonce: Uuid,
    /// How many times the worker ID was claimed or renewed, from 1.
    pub count: u64,
    /// The life in which the last claim or renewal was made.
    pub life: u64,
    /// The lowest ID that the holder may issue.
    pub start: Point,
    /// The highest ID that the holder may issue.
    pub bound: Point,
    /// The registry's clock at the last claim or renewal.
    pub seen: Point,
}

impl RegistryRow {
    /// Returns true if the worker ID is reserved for a database that the registry does not know.
    pub fn is_reserved(&self) -> bool {
        self.bound == Point::MAX
    }
}

/// The worker IDs that the registry grants next in a datacenter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Cursor {
    /// The worker ID after the last one of the ring that was granted, or 0 at the ring's end.
    pub ring: u32,
    /// The distance from the first spare worker ID to the one after the last spare worker ID that was granted, or 0 at the end.
    pub spare: u32,
}
