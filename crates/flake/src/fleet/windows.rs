//! Windows: how many numbers of a tag servers can take in a while, and how many of these a registry can have lost.

use super::MARGIN;

/// How many blocks of the largest size the numbers that a tag gives in one window amount to.
pub const BLOCKS_IN_WINDOW: i64 = 64;

/// The length of a window in microseconds.
pub const WINDOW: i64 = MARGIN.as_micros() as i64;

/// Returns how many windows of numbers can have been taken and lost.
///
/// `since` is the time from the latest time that the state contains to now, in microseconds. `steps` is how many timelines the
/// present one is above the one of the state, from 1. So at most `steps - 1` lives are lost, and these have skipped numbers
/// themselves.
///
/// The clocks of the registry can be one margin behind the ones of the lost part, so that one window more can have passed. Windows
/// that begin at least one margin apart by clocks that differ by one margin begin at most twice more than whole margins have
/// passed, and one window can have begun before the lost part. For one step, these are the whole windows in `since` and four. A
/// lost life computes with a `since` that is at most one margin longer and with fewer steps. In a sum over lost lives whose steps add
/// up to at most `steps - 1`, the factor `2 * steps - 1` covers the skips and what was taken.
pub fn lost_windows(since: i64, steps: u32) -> i64 {
    let whole = i128::from(since.max(0) / WINDOW);
    let windows = (2 * i128::from(steps) - 1) * (whole + 3 + i128::from(steps));
    i64::try_from(windows).unwrap_or(i64::MAX)
}
