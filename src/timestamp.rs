//! Between `timestamptz` and the core's instants, microseconds since the Unix epoch.

use flake::Nanos;
use pgrx::prelude::*;

use crate::failure::Failure;

/// Microseconds from the Unix epoch to 2000-01-01, where PostgreSQL's count begins (`POSTGRES_EPOCH_JDATE` less
/// `UNIX_EPOCH_JDATE`, 10,957 days).
const POSTGRES_EPOCH: i128 = 10_957 * 86_400 * 1_000_000;

/// The instant of a clock's time.
pub fn of(time: Nanos) -> i128 {
    i128::from(time / 1_000)
}

/// The instant of a timestamp; an infinite one lies beyond every layout's reach on its side, with room for arithmetic.
pub fn instant(at: TimestampWithTimeZone) -> i128 {
    match at.into_inner() {
        i64::MIN => i128::MIN / 4,
        i64::MAX => i128::MAX / 4,
        micros => i128::from(micros) + POSTGRES_EPOCH,
    }
}

/// The timestamp of an instant; an error beyond the range of the type, which a layout of many timestamp bits can exceed.
pub fn timestamptz(instant: i128) -> Result<TimestampWithTimeZone, Failure> {
    let micros = i64::try_from(instant - POSTGRES_EPOCH).map_err(|_| Failure::TimestampRange)?;
    match micros {
        // The type's marks for infinity, which no instant means.
        i64::MIN | i64::MAX => Err(Failure::TimestampRange),
        _ => TimestampWithTimeZone::try_from(micros).map_err(|_| Failure::TimestampRange),
    }
}

/// An instant in ISO 8601, in UTC whatever the session's time zone; beyond the range of `timestamptz` infinity.
pub fn utc(instant: i128) -> String {
    match timestamptz(instant) {
        Ok(at) => at.to_iso_string_with_timezone("UTC").unwrap_or_default(),
        Err(_) if instant < 0 => "-infinity".into(),
        Err(_) => "infinity".into(),
    }
}
