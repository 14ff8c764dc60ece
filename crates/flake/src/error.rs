//! Errors in layouts, IDs, and parts of IDs.
//!
//! An error contains the facts, so that callers can write their own messages. As with every error in this crate, its
//! text states the facts in one sentence. The sentence begins with a lower-case letter, and does not end with a period.

use core::error::Error;
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
    /// The sequence number: the position within one tick.
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

/// The reason why a string is not a valid layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutError {
    /// The string is neither the name of a preset nor three or four widths with an optional tick.
    Malformed,
    /// The part after the `@` is not a valid tick.
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
    /// The sum of the widths is more than 63 bits.
    TooWide {
        /// The sum of the widths.
        bits: u32,
    },
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LayoutError::Malformed => f.write_str("a layout is three or four widths in bits, or the name of a preset"),
            LayoutError::UnknownTick => f.write_str("the tick after \"@\" must be \"1ms\", \"10ms\" or \"1s\""),
            LayoutError::Width { part, bits, min, max } => {
                write!(f, "the {part} field is {bits} bits wide, but it can be {min} to {max} bits wide")
            }
            LayoutError::TooWide { bits } => {
                write!(f, "the widths add up to {bits} bits, but an ID can have at most 63")
            }
        }
    }
}

impl Error for LayoutError {}

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

impl fmt::Display for PartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PartError { part, value, max } = self;
        write!(f, "{value} does not fit into the {part} field, which can hold 0 to {max}")
    }
}

impl Error for PartError {}

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

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FormatError::Negative => f.write_str("a negative number is not an ID"),
            FormatError::TooLarge { max } => write!(f, "the number is above {max}, the largest ID of the layout"),
            FormatError::Part(error) => error.fmt(f),
            FormatError::BeforeEpoch => f.write_str("the time is before the epoch"),
            FormatError::AfterEnd => f.write_str("the time is after the last tick of the layout"),
        }
    }
}

// A `PartError` is displayed in full, so it must not also be returned as the source.
impl Error for FormatError {}

impl From<PartError> for FormatError {
    fn from(error: PartError) -> Self {
        FormatError::Part(error)
    }
}
