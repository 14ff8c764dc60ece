//! The high-water mark: a number in the range of IDs. This server has never issued an ID at or above the mark.
//!
//! The mark is an ID rather than a word or a time, so that a single comparison suffices even after the layout, the
//! epoch or the worker ID has changed. Whatever the new configuration is, the server begins above every ID that it
//! could have issued before.
//!
//! The file `reservation.rs` determines how far ahead of the last ID the mark is set. The library stores the mark as the
//! progress of a replication origin (`src/generator/mark_storage.rs`).

use crate::{Nanos, Stamp};

/// The largest lead of the mark at which a restarted server still issues IDs. It is one day, which is much longer than
/// any window and than any ordinary inaccuracy of a clock.
pub const MAX_LEAD: Nanos = 86_400_000_000_000;

/// A high-water mark. The lowest mark, 1, means that no ID has been issued. The highest mark, 2^63, leaves no ID to
/// issue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mark(u64);

impl Mark {
    /// The mark of a server that has not issued any ID.
    pub const NOTHING_ISSUED: Mark = Mark(1);

    /// The highest mark, which is one above the largest `bigint`.
    pub const MAX: Mark = Mark(1 << 63);

    /// Returns the mark for a stored number, or `None` if the number cannot be a mark, for example if it is 0.
    pub const fn stored(value: u64) -> Option<Mark> {
        if value == 0 || value > Mark::MAX.0 { None } else { Some(Mark(value)) }
    }

    /// Returns the lowest mark above all IDs that `stamp` makes from words below `ceiling`.
    pub const fn above(stamp: &Stamp, ceiling: u64) -> Mark {
        match ceiling.checked_sub(1) {
            None => Mark::NOTHING_ISSUED,
            Some(last) => Mark(stamp.id(last) as u64 + 1),
        }
    }

    /// Returns the number to store.
    pub const fn value(self) -> u64 {
        self.0
    }

    /// Returns the first word from which `stamp` makes an ID at or above the mark, or the word after `last_word` if
    /// there is no such word. A binary search finds the word, because the IDs of one node increase with their words.
    pub const fn first_word(self, stamp: &Stamp, last_word: u64) -> u64 {
        let (mut low, mut high) = (0, last_word + 1);
        while low < high {
            let middle = low + (high - low) / 2;
            if (stamp.id(middle) as u64) < self.0 { low = middle + 1 } else { high = middle }
        }
        low
    }
}
