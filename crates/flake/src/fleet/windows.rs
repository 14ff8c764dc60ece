//! Windows, which limit how many numbers of a tag servers can take in a given time, and how many of these
//! numbers a registry may have lost.

use super::MARGIN;

/// The maximum number of blocks of the largest size that a tag assigns in one window.
pub const BLOCKS_IN_WINDOW: i64 = 64;

/// The length of a window in microseconds.
pub const WINDOW: i64 = MARGIN.as_micros() as i64;

/// Returns how many windows of numbers may have been taken and then lost.
///
/// `since` is the time, in microseconds, that has passed since the latest time in the state. `steps`, at least 1, is
/// the number of the current timeline minus the number of the timeline in the state. At most `steps - 1` lives were
/// lost, and these lives have also skipped numbers.
///
/// The registry's clock can be one margin behind the clock of the lost part, so one more window may have passed.
/// Windows begin at least one margin apart. If the clocks differ by one margin, the number of windows that begin is at
/// most two more than the number of whole margins that have passed. One more window may have begun before the lost
/// part. For one step, the result is the number of whole windows in `since` plus four. For a lost life,
/// `since` is at most one margin longer, and there are fewer steps. If the steps of all lost lives add up to at most
/// `steps - 1`, the factor `2 * steps - 1` covers both the skips and the numbers that were taken.
pub fn lost_windows(since: i64, steps: u32) -> i64 {
    let whole = i128::from(since.max(0) / WINDOW);
    let windows = (2 * i128::from(steps) - 1) * (whole + 3 + i128::from(steps));
    i64::try_from(windows).unwrap_or(i64::MAX)
}
