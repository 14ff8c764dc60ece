//! The high-water mark: one number in ID space, "no ID at or above this was ever issued by this server".
//!
//! It is an ID, not a word or a time, so that one comparison covers every change of layout, epoch and worker ID: with any
//! configuration, the server begins above every ID that it may have issued with another one.

use crate::Stamp;

/// A high-water mark, from 1, which means that no ID was issued, to 2^63, which leaves no ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(u64);

impl Mark {
    /// The mark of a server that has issued no ID.
    pub const NOTHING_ISSUED: Mark = Mark(1);

    /// The largest mark, one above the largest `bigint`.
    pub const MAX: Mark = Mark(1 << 63);

    /// The mark that a store contains. `None` for a number that is never stored, such as 0.
    pub const fn stored(value: u64) -> Option<Mark> {
        if value == 0 || value > Mark::MAX.0 { None } else { Some(Mark(value)) }
    }

    /// The smallest mark above the IDs of all words below `ceiling`, as `stamp` makes them.
    pub const fn above(stamp: &Stamp, ceiling: u64) -> Mark {
        match ceiling.checked_sub(1) {
            None => Mark::NOTHING_ISSUED,
            Some(last) => Mark(stamp.id(last) as u64 + 1),
        }
    }

    /// The number that a store contains.
    pub const fn value(self) -> u64 {
        self.0
    }

    /// The first word whose ID, as `stamp` makes it, is at or above the mark; or the word after `last_word` if there is none. IDs
    /// of one node increase with their words, so a binary search finds it.
    pub const fn first_word(self, stamp: &Stamp, last_word: u64) -> u64 {
        let (mut low, mut high) = (0, last_word + 1);
        while low < high {
            let middle = low + (high - low) / 2;
            if (stamp.id(middle) as u64) < self.0 { low = middle + 1 } else { high = middle }
        }
        low
    }
}
