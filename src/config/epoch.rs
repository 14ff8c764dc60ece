//! Parses the setting `snowflake_pg.epoch`.

use flake::Epoch;
use jiff::Timestamp;
use jiff::civil::DateTime;

use crate::message::layout::EpochProblem;

/// Parses an epoch. The text is either a whole number of milliseconds since 1970 or a time in ISO 8601 format with `Z`
/// or an offset. Returns `None` if the text is empty, in which case the layout determines the epoch.
pub fn parse(text: &str) -> Result<Option<Epoch>, EpochProblem> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    let ms = if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
        text.parse().map_err(|_| EpochProblem::Range)?
    } else {
        let instant: Timestamp =
            text.parse().or_else(|_| midnight(text).ok_or(())).map_err(|()| match text.parse::<DateTime>() {
                Ok(_) => EpochProblem::NoZone,
                Err(_) => EpochProblem::Malformed,
            })?;
        if instant.subsec_nanosecond() % 1_000_000 != 0 {
            return Err(EpochProblem::Fraction);
        }
        instant.as_millisecond()
    };
    Epoch::from_unix_ms(ms).map(Some).ok_or(EpochProblem::Range)
}

/// Parses a date with `Z` or an offset, such as `2030-01-01Z`, and returns the start of that day at that offset.
fn midnight(text: &str) -> Option<Timestamp> {
    let (date, zone) = text.split_at_checked("YYYY-MM-DD".len())?;
    let zone = zone.trim_start();
    let zoned = zone.starts_with(['Z', 'z', '+', '-']);
    zoned.then(|| format!("{date}T00:00:00{zone}").parse().ok()).flatten()
}
