//! The errors for layouts, IDs and their parts. An error contains only facts, and the caller writes the message.

use core::fmt;

/// A field of an ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The timestamp: the number of ticks since the epoch.
    Timestamp,
    /// The datacenter ID.
    Datacenter,
    /// The worker ID.
    Worker,
    /// The sequence number: the position in one tick.
    Sequence,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Part::Timestamp => "timestamp",
            Part::Datacenter => "datacenter",
            Part::Worker => "worker",
            Part::Sequence => "sequence",
        })
    }
}

/// The reason why a text is not a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutError {
    /// The text is neither a preset's name nor three or four widths with an optional tick.
    Malformed,
    /// The text after the `@` is not a tick.
    UnknownTick,
    /// A width is outside its range.
    Width {
        /// The field that has this width.
        part: Part,
        /// The width that was given.
        bits: u32,
        /// The smallest width of this field.
        min: u32,
        /// The largest width of this field.
        max: u32,
    },
    /// The widths sum to more than 63 bits.
    TooWide {
        /// The sum of the widths.
        bits: u32,
    },
}

/// A part that does not fit into its field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartError {
    /// The field.
    pub part: Part,
    /// The value that was given.
    pub value: i64,
    /// The largest value of the field. The smallest value is 0.
    pub max: i64,
}

/// The reason why an ID cannot be decoded or encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormatError {
    /// The number is negative.
    Negative,
    /// The number has bits above the layout's highest bit.
    TooLarge {
        /// The largest ID of the layout.
        max: i64,
    },
    /// A datacenter ID, a worker ID or a sequence number does not fit into its field.
    Part(PartError),
    /// The instant is before the epoch.
    BeforeEpoch,
    /// The instant is after the layout's last tick.
    AfterEnd,
}

impl From<PartError> for FormatError {
    fn from(error: PartError) -> Self {
        FormatError::Part(error)
    }
}
