//! The positions of the fields of an ID.
//!
//! ```text
//!  63 62                                        22 21        12 11           0
//! +--+--------------------------------------------+------------+--------------+
//! | 0|  timestamp (41): ticks since the epoch     | worker (10)| sequence (12)|
//! +--+--------------------------------------------+------------+--------------+
//! ```
//!
//! This is the default layout, `41:10:12`. A layout with four widths has a datacenter field above the worker field. If
//! the second width is marked with an `s`, as in `39:8s:16@10ms`, the second field is the sequence, and the node's
//! fields are below it.

use core::fmt;

use crate::{LayoutError, Part, PartError, Tick};

/// The widths and the order of the fields of an ID, and the length of its tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    timestamp_bits: u32,
    datacenter_bits: Option<u32>,
    worker_bits: u32,
    sequence_bits: u32,
    sequence_lowest: bool,
    tick: Tick,
}

/// The part of an ID that identifies the server. It is the same in all IDs from one server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node {
    /// The datacenter ID, or 0 in a layout without a datacenter field.
    pub datacenter: u32,
    /// The worker ID.
    pub worker: u32,
}

/// The fields of an ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Parts {
    /// The number of ticks since the epoch.
    pub tick: u64,
    /// The server that issued the ID.
    pub node: Node,
    /// The position within the tick.
    pub sequence: u32,
}

/// Turns words into the IDs of one node. Only this type contains the position of the node bits, which is computed once
/// for each node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stamp {
    low: u64,
    shift: u32,
    node: u64,
}

impl Stamp {
    /// Returns the ID of a word.
    #[inline]
    pub const fn id(&self, word: u64) -> i64 {
        ((word & !self.low) << self.shift | self.node | (word & self.low)) as i64
    }

    /// Returns a mask of the bits that identify the server, and the value of these bits in the IDs of this node.
    pub const fn node_field(&self) -> (i64, i64) {
        let mask = ((1 << self.shift) - 1) << self.low.count_ones();
        (mask, self.node as i64)
    }
}

impl Layout {
    /// The number of bits in a positive `bigint`.
    pub const MAX_BITS: u32 = 63;

    /// The largest width of the datacenter, worker and sequence fields. The SQL functions return their values as
    /// `integer`.
    pub const MAX_FIELD_BITS: u32 = 31;

    /// `41:10:12` with ticks of one millisecond. This is Twitter's layout with its ten machine bits as one worker ID.
    pub const TWITTER: Layout = Layout::widths(41, None, 10, 12, Tick::Ms1);

    /// Sonyflake's layout: 39 timestamp bits with ticks of 10 ms, 8 sequence bits, and the 16 bits of the machine in
    /// the lowest position (`sonyflake.go`).
    pub const SONYFLAKE: Layout = Layout::widths(39, None, 16, 8, Tick::Ms10).with_sequence_above_node();

    /// Parses a layout that is given as widths in bits. The format is `timestamp:worker:sequence` or
    /// `timestamp:datacenter:worker:sequence`. If the second width is followed by an `s`, the format is
    /// `timestamp:sequence:worker` or `timestamp:sequence:datacenter:worker`. A suffix `@1ms`, `@10ms` or `@1s` is
    /// optional. Letters can be upper or lower case. [`crate::IdFormat::parse`] also accepts the names of presets.
    pub fn parse(text: &str) -> Result<Layout, LayoutError> {
        let text = text.trim();
        let (widths, tick) = match text.split_once('@') {
            None => (text, Tick::Ms1),
            Some((widths, name)) => {
                let named = Tick::ALL.into_iter().find(|tick| tick.name().eq_ignore_ascii_case(name));
                (widths, named.ok_or(LayoutError::UnknownTick)?)
            }
        };
        let mut bits = [0u32; 4];
        let mut count = 0;
        let mut sequence_second = false;
        for width in widths.split(':') {
            let marked = width.strip_suffix(['s', 'S']).filter(|_| count == 1);
            sequence_second |= marked.is_some();
            let digits = marked.unwrap_or(width);
            if count == bits.len() || digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
                return Err(LayoutError::Malformed);
            }
            // The string contains only digits, so a number that does not fit into `u32` is too large for any field.
            bits[count] = digits.parse().unwrap_or(u32::MAX);
            count += 1;
        }
        let widths = match (count, sequence_second) {
            (3, false) => (None, bits[1], bits[2]),
            (4, false) => (Some(bits[1]), bits[2], bits[3]),
            (3, true) => (None, bits[2], bits[1]),
            (4, true) => (Some(bits[2]), bits[3], bits[1]),
            _ => return Err(LayoutError::Malformed),
        };
        let layout = Layout::of(bits[0], widths.0, widths.1, widths.2, tick)?;
        Ok(if sequence_second { layout.with_sequence_above_node() } else { layout })
    }

    /// Returns the layout with these widths and with the sequence in the lowest position. The timestamp and the
    /// sequence need at least one bit each. The sum of the widths must not exceed [`Layout::MAX_BITS`].
    pub fn of(
        timestamp_bits: u32,
        datacenter_bits: Option<u32>,
        worker_bits: u32,
        sequence_bits: u32,
        tick: Tick,
    ) -> Result<Layout, LayoutError> {
        let ranges = [
            (Part::Timestamp, timestamp_bits, 1, Layout::MAX_BITS - 1),
            (Part::Datacenter, datacenter_bits.unwrap_or(0), 0, Layout::MAX_FIELD_BITS),
            (Part::Worker, worker_bits, 0, Layout::MAX_FIELD_BITS),
            (Part::Sequence, sequence_bits, 1, Layout::MAX_FIELD_BITS),
        ];
        for (part, bits, min, max) in ranges {
            if bits < min || bits > max {
                return Err(LayoutError::Width { part, bits, min, max });
            }
        }
        let layout = Layout::widths(timestamp_bits, datacenter_bits, worker_bits, sequence_bits, tick);
        match layout.bits() {
            bits if bits > Layout::MAX_BITS => Err(LayoutError::TooWide { bits }),
            _ => Ok(layout),
        }
    }

    /// Returns the layout with these widths and with the sequence in the lowest position. The caller knows that the
    /// widths are valid.
    pub(crate) const fn widths(
        timestamp_bits: u32,
        datacenter_bits: Option<u32>,
        worker_bits: u32,
        sequence_bits: u32,
        tick: Tick,
    ) -> Layout {
        Layout { timestamp_bits, datacenter_bits, worker_bits, sequence_bits, sequence_lowest: true, tick }
    }

    /// Returns the layout with the same fields, but with the sequence between the timestamp and the node. The IDs of
    /// one tick are then not consecutive numbers.
    pub const fn with_sequence_above_node(self) -> Layout {
        Layout { sequence_lowest: false, ..self }
    }

    /// Returns the unit of the timestamp.
    pub const fn tick(&self) -> Tick {
        self.tick
    }

    /// Returns true if the sequence is the lowest field, so that the IDs of one tick are consecutive numbers.
    pub const fn sequence_lowest(&self) -> bool {
        self.sequence_lowest
    }

    /// Returns true if the layout has a datacenter field. A field of width 0, as in `41:0:10:12`, does not count.
    pub const fn has_datacenter(&self) -> bool {
        self.datacenter() > 0
    }

    /// Returns true if the layout has a worker field. A field of width 0, as in `47:0:16`, does not count.
    pub const fn has_worker(&self) -> bool {
        self.worker_bits > 0
    }

    /// Returns the width of the sequence in bits.
    pub const fn sequence_bits(&self) -> u32 {
        self.sequence_bits
    }

    /// Returns the number of IDs that one server can issue in one tick.
    pub const fn sequence_capacity(&self) -> u64 {
        1 << self.sequence_bits
    }

    /// Returns the largest value of a field.
    pub const fn max(&self, part: Part) -> u64 {
        let bits = match part {
            Part::Timestamp => self.timestamp_bits,
            Part::Datacenter => self.datacenter(),
            Part::Worker => self.worker_bits,
            Part::Sequence => self.sequence_bits,
        };
        (1 << bits) - 1
    }

    /// Returns the largest word: the last sequence number of the last tick.
    pub const fn last_word(&self) -> u64 {
        (1 << (self.timestamp_bits + self.sequence_bits)) - 1
    }

    /// Returns the largest ID of any node.
    pub const fn last_id(&self) -> i64 {
        ((1u64 << self.bits()) - 1) as i64
    }

    /// Returns the number of bits below the timestamp.
    pub const fn timestamp_shift(&self) -> u32 {
        self.node_bits() + self.sequence_bits
    }

    /// Returns the stamp that turns words into the IDs of `node`, or an error if one of the node's numbers does not fit
    /// into its field.
    pub fn stamp(&self, node: Node) -> Result<Stamp, PartError> {
        let numbers = [(Part::Datacenter, node.datacenter), (Part::Worker, node.worker)];
        for (part, number) in numbers {
            if u64::from(number) > self.max(part) {
                return Err(PartError { part, value: i64::from(number), max: self.max(part) as i64 });
            }
        }
        let number = u64::from(node.datacenter) << self.worker_bits | u64::from(node.worker);
        Ok(Stamp { low: self.low_mask(), shift: self.node_bits(), node: number << self.node_shift() })
    }

    /// Returns the word of an ID of any node. The ID must not be negative.
    pub const fn word(&self, id: i64) -> u64 {
        let low = self.low_mask();
        (id as u64 >> self.node_bits()) & !low | (id as u64 & low)
    }

    /// Returns the fields of an ID. The ID must be between 0 and [`Layout::last_id`].
    pub const fn split(&self, id: i64) -> Parts {
        let word = self.word(id);
        let node = id as u64 >> self.node_shift() & ((1 << self.node_bits()) - 1);
        Parts {
            tick: word >> self.sequence_bits,
            node: Node {
                datacenter: (node >> self.worker_bits) as u32,
                worker: (node & self.max(Part::Worker)) as u32,
            },
            sequence: (word & self.max(Part::Sequence)) as u32,
        }
    }

    const fn bits(&self) -> u32 {
        self.timestamp_bits + self.timestamp_shift()
    }

    const fn datacenter(&self) -> u32 {
        match self.datacenter_bits {
            Some(bits) => bits,
            None => 0,
        }
    }

    const fn node_bits(&self) -> u32 {
        self.datacenter() + self.worker_bits
    }

    /// Returns a mask of the bits of a word that are below the node field.
    const fn low_mask(&self) -> u64 {
        if self.sequence_lowest { self.max(Part::Sequence) } else { 0 }
    }

    const fn node_shift(&self) -> u32 {
        if self.sequence_lowest { self.sequence_bits } else { 0 }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.timestamp_bits)?;
        if !self.sequence_lowest {
            write!(f, "{}s:", self.sequence_bits)?;
        }
        if let Some(bits) = self.datacenter_bits {
            write!(f, "{bits}:")?;
        }
        write!(f, "{}", self.worker_bits)?;
        if self.sequence_lowest {
            write!(f, ":{}", self.sequence_bits)?;
        }
        match self.tick {
            Tick::Ms1 => Ok(()),
            tick => write!(f, "@{tick}"),
        }
    }
}
