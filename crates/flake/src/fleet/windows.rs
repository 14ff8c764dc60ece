//! Windows: how many numbers of a tag servers can take in a given time, and how many of these a registry may have lost.

use super::MARGIN;

/// The most numbers that a tag assigns in one window, in blocks of the largest size.
pub const BLOCKS_IN_WINDOW: i64 = 64;

/// The length of a window in microseconds.
pub const WINDOW: i64 = MARGIN.as_micros() as i64;

/// Returns how many windows of numbers may have been taken and lost.
///
/// `since` is the time that has passed since the latest time in the state, in microseconds. `steps`, from 1, is the
/// number of the current timeline minus that of the timeline in the state. At most `steps - 1` lives are lost, and
/// these have also skipped numbers.
///
/// The clocks of the registry can be one margin behind those of the lost part, so one more window may have passed.
/// Windows begin at least one margin apart. If the clocks differ by one margin, at most two more windows begin than
/// whole margins have passed, and one window may have begun before the lost part. For one step, this adds up to the
/// whole windows in `since` plus four. For a lost life, `since` is at most one margin longer, and there are fewer
/// steps. In a sum over lost lives whose steps add up to at most `steps - 1`, the factor `2 * steps - 1` covers both
/// the skips and the numbers that were taken.
pub fn lost_windows(since: i64, steps: u32) -> i64 {
    let whole = i128::from(since.max(0) / WINDOW);
    let windows = (2 * i128::from(steps) - 1) * (whole + 3 + i128::from(steps));
    i64::try_from(windows).unwrap_or(i64::MAX)
}
