//! Converts between `timestamptz` and the instants of the core, which are microseconds since the Unix epoch.

use flake::Nanos;
use pgrx::prelude::*;

/// Microseconds from the Unix epoch to 2000-01-01, from which PostgreSQL counts (`POSTGRES_EPOCH_JDATE` minus
/// `UNIX_EPOCH_JDATE`, 10,957 days).
const POSTGRES_EPOCH: i128 = 10_957 * 86_400 * 1_000_000;

/// The instant of a clock's time.
pub fn of(time: Nanos) -> i128 {
    i128::from(time / 1_000)
}

/// The instant of a timestamp. An infinite timestamp becomes an instant outside the range of every layout, with room
/// for arithmetic.
pub fn instant(at: TimestampWithTimeZone) -> i128 {
    match at.into_inner() {
        i64::MIN => i128::MIN / 4,
        i64::MAX => i128::MAX / 4,
        micros => i128::from(micros) + POSTGRES_EPOCH,
    }
}

/// The timestamp of an instant; `None` outside the range of the type, which a layout with many timestamp bits can
/// exceed.
pub fn timestamptz(instant: i128) -> Option<TimestampWithTimeZone> {
    let micros = i64::try_from(instant - POSTGRES_EPOCH).ok()?;
    match micros {
        // The type uses these values for infinity. They are not instants.
        i64::MIN | i64::MAX => None,
        _ => TimestampWithTimeZone::try_from(micros).ok(),
    }
}

/// An instant in ISO 8601, in UTC whatever the time zone of the session is; infinity outside the range of
/// `timestamptz`.
pub fn utc(instant: i128) -> String {
    match timestamptz(instant) {
        Some(at) => at.to_iso_string_with_timezone("UTC").unwrap_or_default(),
        None if instant < 0 => "-infinity".into(),
        None => "infinity".into(),
    }
}
