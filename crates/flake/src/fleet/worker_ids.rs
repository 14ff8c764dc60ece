//! The division of a datacenter's worker IDs.

use core::ops::Range;

use crate::{Layout, Part};

/// The number of slices into which the spare worker IDs are divided, if there are enough of them.
const MAX_SLICES: u32 = 32;

/// The division of a datacenter's worker IDs. `0..spare` is the ring, `spare..sliced` are the common spare worker IDs,
/// and `sliced..end` are the slices of the timelines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ring {
    /// The first spare worker ID.
    pub spare: u32,
    /// The first worker ID in a slice.
    pub sliced: u32,
    /// The number of slices, at most 32.
    pub slices: u32,
    /// The number of worker IDs, at most 2^31.
    pub end: u32,
}

impl Ring {
    /// Returns the division of the worker IDs of a layout. The last quarter is spare, and half of this quarter is
    /// divided into slices. If there are fewer than 8 worker IDs, none of them is spare.
    pub const fn of(layout: &Layout) -> Ring {
        let end = (layout.max(Part::Worker) + 1) as u32;
        let spare = if end < 8 { 0 } else { end / 4 };
        let half = spare / 2;
        let slices = if half < MAX_SLICES { half } else { MAX_SLICES };
        Ring { spare: end - spare, sliced: end - half, slices, end }
    }

    /// Returns the slice of a timeline. Only timelines with the same remainder modulo the number of slices grant these
    /// worker IDs.
    pub const fn slice(&self, timeline: u32) -> Range<u32> {
        if self.slices == 0 {
            return self.end..self.end;
        }
        let size = (self.end - self.sliced) / self.slices;
        let begin = self.sliced + timeline % self.slices * size;
        begin..begin + size
    }
}
