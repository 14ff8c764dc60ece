//! The high-water mark: one number in the range of IDs. It means "no ID at or above this number was ever issued by this server".
//!
//! The mark is an ID, not a word or a time, so that one comparison covers every change of the layout, the epoch and the worker
//! ID. With any configuration, the server begins above every ID that it could have issued with an earlier configuration.

use crate::Stamp;

/// A high-water mark. The lowest mark is 1, which means that no ID was issued. The highest mark is 2^63, which leaves no ID to
/// issue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mark(u64);

impl Mark {
    /// The mark of a server that has issued no ID.
    pub const NOTHING_ISSUED: Mark = Mark(1);

    /// The largest mark, one above the largest `bigint`.
    pub const MAX: Mark = Mark(1 << 63);

    /// Returns the mark that a store contains, or `None` for a number that is never stored, such as 0.
    pub const fn stored(value: u64) -> Option<Mark> {
        if value == 0 || value > Mark::MAX.0 { None } else { Some(Mark(value)) }
    }

    /// Returns the smallest mark above the IDs that `stamp` makes from the words below `ceiling`.
    pub const fn above(stamp: &Stamp, ceiling: u64) -> Mark {
        match ceiling.checked_sub(1) {
            None => Mark::NOTHING_ISSUED,
            Some(last) => Mark(stamp.id(last) as u64 + 1),
        }
    }

    /// Returns the number that a store contains.
    pub const fn value(self) -> u64 {
        self.0
    }

    /// Returns the first word from which `stamp` makes an ID at or above the mark, or the word after `last_word` if there is no
    /// such word. The IDs of one node increase with their words, so a binary search finds the word.
    pub const fn first_word(self, stamp: &Stamp, last_word: u64) -> u64 {
        let (mut low, mut high) = (0, last_word + 1);
        while low < high {
            let middle = low + (high - low) / 2;
            if (stamp.id(middle) as u64) < self.0 { low = middle + 1 } else { high = middle }
        }
        low
    }
}
