//! A layout together with its epoch. Both are needed to decode an ID and to find the IDs for a given instant.

use crate::{Epoch, FormatError, Layout, Node, Part, PartError, Parts};

/// A layout together with its epoch. Instants are microseconds since the Unix epoch. Their type is `i128` because a
/// layout can cover more time than any clock. Fractions of a tick are rounded down unless a function's documentation
/// says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IdFormat {
    /// The positions of the fields.
    pub layout: Layout,
    /// The instant at which tick 0 begins.
    pub epoch: Epoch,
}

impl IdFormat {
    /// Returns the fields of `id`, or an error if the number cannot be an ID in this layout.
    pub fn split(&self, id: i64) -> Result<Parts, FormatError> {
        let max = self.layout.last_id();
        match id {
            ..0 => Err(FormatError::Negative),
            _ if id > max => Err(FormatError::TooLarge { max }),
            _ => Ok(self.layout.split(id)),
        }
    }

    /// Returns the ID that `node` issues at `at` with `sequence`, or an error if a part does not fit into its field.
    /// Parts are never truncated.
    pub fn join(&self, at: i128, node: Node, sequence: u32) -> Result<i64, FormatError> {
        let stamp = self.layout.stamp(node)?;
        let max = self.layout.max(Part::Sequence);
        if u64::from(sequence) > max {
            return Err(PartError { part: Part::Sequence, value: i64::from(sequence), max: max as i64 }.into());
        }
        let word = self.tick_at(at)? << self.layout.sequence_bits() | u64::from(sequence);
        Ok(stamp.id(word))
    }

    /// Returns the instant at which `tick` begins.
    pub fn instant(&self, tick: u64) -> i128 {
        self.epoch_micros() + i128::from(tick) * i128::from(self.layout.tick().micros())
    }

    /// Returns the instant at which the last tick ends.
    pub fn end(&self) -> i128 {
        self.instant(self.layout.max(Part::Timestamp)) + self.tick_micros()
    }

    /// Returns the lowest ID of any node in the tick that contains `at`.
    pub fn min_id(&self, at: i128) -> Result<i64, FormatError> {
        Ok((self.tick_at(at)? << self.layout.timestamp_shift()) as i64)
    }

    /// Returns the highest ID of any node in the tick that contains `at`.
    pub fn max_id(&self, at: i128) -> Result<i64, FormatError> {
        Ok(self.min_id(at)? | ((1 << self.layout.timestamp_shift()) - 1))
    }

    /// Returns the lowest ID whose time is `at` or later, or 0 if `at` is before the epoch. If `at` is after the
    /// layout's last tick, returns the number above the highest ID, or `None` if this number does not fit into a
    /// `bigint`.
    pub fn first_id_from(&self, at: i128) -> Option<i64> {
        let tick = (at - self.epoch_micros() + self.tick_micros() - 1).div_euclid(self.tick_micros()).max(0);
        if tick > i128::from(self.layout.max(Part::Timestamp)) {
            return self.layout.last_id().checked_add(1);
        }
        Some((tick as i64) << self.layout.timestamp_shift())
    }

    /// Returns the highest ID whose time is before `at`, or -1 if there is no such ID. If `at` is after the layout's
    /// last tick, returns the layout's highest ID.
    pub fn last_id_before(&self, at: i128) -> i64 {
        self.first_id_from(at).map_or(self.layout.last_id(), |first| first - 1)
    }

    fn tick_at(&self, at: i128) -> Result<u64, FormatError> {
        match (at - self.epoch_micros()).div_euclid(self.tick_micros()) {
            ..0 => Err(FormatError::BeforeEpoch),
            tick if tick > i128::from(self.layout.max(Part::Timestamp)) => Err(FormatError::AfterEnd),
            tick => Ok(tick as u64),
        }
    }

    fn epoch_micros(&self) -> i128 {
        i128::from(self.epoch.unix_ms()) * 1_000
    }

    fn tick_micros(&self) -> i128 {
        i128::from(self.layout.tick().micros())
    }
}
