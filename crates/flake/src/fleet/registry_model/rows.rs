//! The records of the reference model of the registry.

use crate::IdFormat;

use crate::fleet::{Point, Uuid};

/// The server that runs the registry. These values change when the registry's data comes from a backup or a standby.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Source {
    /// PostgreSQL's system identifier.
    pub system: u64,
    /// PostgreSQL's timeline.
    pub timeline: u32,
    /// The tables of the registry. The value is derived from their OIDs, the OID of their database, and a mark that
    /// shows whether their rows were restored.
    pub tables: u64,
}

/// The registry's only record about the fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fleet {
    /// The identity of the fleet.
    pub id: Uuid,
    /// The fleet's layout and epoch.
    pub format: IdFormat,
    /// The number of the registry's life, at least 1. It increases whenever the registry might have lost changes.
    pub life: u64,
    /// The server that ran the registry in this life.
    pub source: Source,
    /// The end of the last quarantine, and the floor of the ring. [`Point::ZERO`] if there was no quarantine.
    pub quarantine_until: Point,
    /// The end of the quarantine before the current one. It is the floor of the spare worker IDs, and the value that
    /// `open` restores.
    pub quarantine_before: Point,
    /// The end of the last quarantine of the spare worker IDs. [`Point::ZERO`] if there was none.
    pub spare_until: Point,
    /// The value of `spare_until` when the registry was last known to be calm.
    pub spare_before: Point,
    /// The latest `seen` of all rows when the registry was last known to be calm.
    pub newest_seen: Point,
    /// The timeline on which the registry was last known to be calm. By that time, the bounds of all spare worker IDs
    /// that earlier timelines had granted and that are not in the rows had passed. `None` if this is not known for any
    /// timeline of this system.
    pub settled: Option<u32>,
    /// The floor of the last change of the layout or the epoch, or [`Point::ZERO`] if there was no change. All numbers
    /// that may have been granted before the change are below it. No new grant begins below the floor, and no grant
    /// that began below it is renewed.
    pub floor: Point,
    /// True if the lost changes may have granted the common spare worker IDs to other servers.
    pub spare_closed: bool,
}

/// The registry's record about one worker ID. Records are deleted only when the layout is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RegistryRow {
    /// The current or last holder.
    pub holder: Uuid,
    /// The nonce of the last claim or renewal.
    pub nonce: Uuid,
    /// How many times the worker ID has been claimed or renewed, at least 1.
    pub count: u64,
    /// The life in which the last claim or renewal was made.
    pub life: u64,
    /// The lowest ID that the holder may issue.
    pub start: Point,
    /// The highest ID that the holder may issue.
    pub bound: Point,
    /// The time of the registry's clock at the last claim or renewal.
    pub seen: Point,
}

impl RegistryRow {
    /// Returns true if the worker ID is reserved for a database that does not contact the registry.
    pub fn is_reserved(&self) -> bool {
        self.bound == Point::MAX
    }
}

/// The positions from which the registry grants the next worker IDs of a datacenter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Cursor {
    /// The worker ID after the one that was last granted from the ring, or 0 after the end of the ring.
    pub ring: u32,
    /// The worker ID after the spare one that was last granted, as an offset from the first spare worker ID, or 0 after
    /// the end.
    pub spare: u32,
}
