//! How long the next block of a tag should be, and when to fetch it. Times are in nanoseconds.

use crate::Nanos;

const MINUTE: Nanos = 60_000_000_000;

/// A block that lasts a shorter time is followed by a longer one.
pub const SHORT: Nanos = 15 * MINUTE;

/// A block that lasts a longer time is followed by a shorter one.
pub const LONG: Nanos = 30 * MINUTE;

/// The next block is fetched at the latest when this part of the current one is left.
const LAST_PART: u64 = 10;

/// How many fetches fit at least into the time for which the numbers last that are left when the next block is fetched. A fetch can
/// take several times as long as the one before.
const FETCHES: u128 = 4;

/// Returns the length of the next block, if the last one had `length` numbers and was fetched `lasted` ago. The registry keeps the
/// length between the limits of the tag.
pub fn next_length(length: u64, lasted: Nanos) -> u64 {
    match lasted {
        ..SHORT => length.saturating_mul(2),
        SHORT..=LONG => length,
        _ => (length / 2).max(1),
    }
}

/// Returns how many numbers of a block are left when the next one should be fetched. `drawn` numbers were drawn in the last `time`, and
/// a fetch takes `latency`. Without a `time`, nothing is known about how fast the numbers are drawn.
pub fn fetch_below(length: u64, drawn: u64, time: Nanos, latency: Nanos) -> u64 {
    let below = match time {
        0 => length / 2,
        _ => {
            let wanted = (u128::from(drawn) * u128::from(latency)).saturating_mul(FETCHES) / u128::from(time);
            u64::try_from(wanted).unwrap_or(u64::MAX)
        }
    };
    below.max(length / LAST_PART).clamp(1, length.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    #[test]
    fn a_block_that_lasts_a_short_time_is_followed_by_a_longer_one() {
        let lengths = [0, SHORT - 1, SHORT, LONG, LONG + 1, Nanos::MAX].map(|lasted| next_length(1_000, lasted));
        assert_eq!(lengths, [2_000, 2_000, 1_000, 1_000, 500, 500]);
        assert_eq!((next_length(1, Nanos::MAX), next_length(u64::MAX, 0)), (1, u64::MAX));
    }

    #[test]
    fn the_next_block_is_fetched_before_the_current_one_is_drawn() {
        // 1000 numbers in a second, and a fetch takes 2 ms: 8 numbers are drawn during 4 fetches, but 10 % is 100 numbers.
        assert_eq!(fetch_below(1_000, 1_000, 1_000 * MS, 2 * MS), 100);
        // 100 times as many.
        assert_eq!(fetch_below(1_000, 100_000, 1_000 * MS, 2 * MS), 800);
        assert_eq!(fetch_below(1_000, 1_000_000, 1_000 * MS, 2 * MS), 1_000);
        assert_eq!(fetch_below(1_000, 0, 1_000 * MS, 2 * MS), 100);
        assert_eq!(fetch_below(1_000, 0, 0, 0), 500);
        assert_eq!(fetch_below(1, u64::MAX, 1, Nanos::MAX), 1);
        assert_eq!(fetch_below(1, 0, 0, 0), 1);
    }
}
