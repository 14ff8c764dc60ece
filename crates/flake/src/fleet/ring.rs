//! How the worker IDs of a datacenter are divided.

use core::ops::Range;

use crate::{Layout, Part};

/// The number of slices that the spare worker IDs are divided into, where there are enough.
const MAX_SLICES: u32 = 32;

/// The division of a datacenter's worker IDs: `0..spare` is the ring, `spare..sliced` is the common part of the spare worker IDs, and
/// `sliced..end` are the slices of the timelines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ring {
    /// The first spare worker ID.
    pub spare: u32,
    /// The first worker ID of the slices.
    pub sliced: u32,
    /// The number of slices, up to 32.
    pub slices: u32,
    /// The number of worker IDs, up to 2^31.
    pub end: u32,
}

impl Ring {
    /// Returns the division of the worker IDs of a layout. The last quarter is spare, and half of it is divided into slices.
    /// With fewer than 8 worker IDs, none is spare.
    pub const fn of(layout: &Layout) -> Ring {
        let end = (layout.max(Part::Worker) + 1) as u32;
        let spare = if end < 8 { 0 } else { end / 4 };
        let half = spare / 2;
        let slices = if half < MAX_SLICES { half } else { MAX_SLICES };
        Ring { spare: end - spare, sliced: end - half, slices, end }
    }

    /// Returns the worker IDs that only timelines with the same remainder grant.
    pub const fn slice(&self, timeline: u32) -> Range<u32> {
        if self.slices == 0 {
            return self.end..self.end;
        }
        let size = (self.end - self.sliced) / self.slices;
        let begin = self.sliced + timeline % self.slices * size;
        begin..begin + size
    }
}
