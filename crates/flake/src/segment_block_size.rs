//! Determines how long a tag's blocks are. Times are in nanoseconds.

use crate::Nanos;
use crate::fleet::{BLOCKS_IN_WINDOW, lost_windows};

const MINUTE: Nanos = 60_000_000_000;

/// If a block lasts for less time than this, the next block is longer.
pub const SHORT: Nanos = 15 * MINUTE;

/// If a block lasts for more time than this, the next block is shorter.
pub const LONG: Nanos = 30 * MINUTE;

/// A failover may skip at most one quarter (1 / `SKIPPED_PART`) of a period's numbers.
const SKIPPED_PART: u64 = 4;

/// The maximum block size for a period. It is sufficient for 100,000 numbers per second.
const LARGEST: u64 = 1_000_000;

/// The minimum block sizes for a period with few numbers and for a period with many numbers. If the period's maximum
/// block size is smaller, it is also the minimum.
const SMALLEST: (u64, u64) = (10, 100);

/// Returns the lengths of the shortest and the longest block of a period with `numbers` numbers. If a failover of the
/// registry is detected immediately, the period skips at most a quarter of its numbers, or 256 numbers if it has fewer
/// than 1,024.
pub fn period_lengths(numbers: u64) -> (u64, u64) {
    let skipped_blocks = lost_windows(0, 1) as u64 * BLOCKS_IN_WINDOW as u64;
    let longest = (numbers / SKIPPED_PART / skipped_blocks).clamp(1, LARGEST);
    ((longest / 10).clamp(SMALLEST.0, SMALLEST.1).min(longest), longest)
}

/// Returns the length of the next block. The last block had `length` numbers, and was fetched `lasted` ago. The
/// registry keeps the length within the limits of the tag.
pub fn next_length(length: u64, lasted: Nanos) -> u64 {
    match lasted {
        ..SHORT => length.saturating_mul(2),
        SHORT..=LONG => length,
        _ => (length / 2).max(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_that_lasts_a_short_time_is_followed_by_a_longer_one() {
        let lengths = [0, SHORT - 1, SHORT, LONG, LONG + 1, Nanos::MAX].map(|lasted| next_length(1_000, lasted));
        assert_eq!(lengths, [2_000, 2_000, 1_000, 1_000, 500, 500]);
        assert_eq!((next_length(1, Nanos::MAX), next_length(u64::MAX, 0)), (1, u64::MAX));
    }

    #[test]
    fn a_failover_skips_at_most_a_quarter_of_a_period() {
        let lengths = [9, 999, 9_999, 99_999, 999_999, 999_999_999, u64::MAX].map(period_lengths);
        let expected = [(1, 1), (1, 1), (9, 9), (10, 97), (97, 976), (100, 976_562), (100, 1_000_000)];
        assert_eq!(lengths, expected);
        for digits in 4..=18 {
            let numbers = 10_u64.pow(digits) - 1;
            assert!(period_lengths(numbers).1 * 4 * 64 <= numbers / 4);
        }
    }
}
