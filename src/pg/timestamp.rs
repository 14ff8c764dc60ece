//! Converts between `timestamptz` and the instants of the core, which are microseconds since the Unix epoch.
#![allow(unsafe_code)]

use flake::Nanos;
use pgrx::datum::Date;
use pgrx::prelude::*;

/// The number of microseconds from the Unix epoch to 2000-01-01, which is PostgreSQL's epoch (`POSTGRES_EPOCH_JDATE`
/// minus `UNIX_EPOCH_JDATE`, 10,957 days).
const POSTGRES_EPOCH: i128 = 10_957 * DAY;

/// The number of microseconds in a day.
const DAY: i128 = 86_400 * 1_000_000;

/// Returns the time at which the transaction began, as `now()` does.
pub fn transaction_start() -> TimestampWithTimeZone {
    // SAFETY: the call reads a variable of this process.
    let micros = unsafe { pg_sys::GetCurrentTransactionStartTimestamp() };
    TimestampWithTimeZone::try_from(micros).expect("a transaction begins in the range of the type")
}

/// Converts a clock time to an instant.
pub fn of(time: Nanos) -> i128 {
    i128::from(time / 1_000)
}

/// Converts a timestamp to an instant. An infinite timestamp becomes an instant that is outside the range of every
/// layout but small enough for arithmetic.
pub fn instant(at: TimestampWithTimeZone) -> i128 {
    match at.into_inner() {
        i64::MIN => i128::MIN / 4,
        i64::MAX => i128::MAX / 4,
        micros => i128::from(micros) + POSTGRES_EPOCH,
    }
}

/// Converts a day to the instant at which it begins in UTC. An infinite day is converted like an infinite timestamp.
pub fn day(at: Date) -> i128 {
    match at.into_inner() {
        i32::MIN => i128::MIN / 4,
        i32::MAX => i128::MAX / 4,
        days => i128::from(days) * DAY + POSTGRES_EPOCH,
    }
}

/// Converts an instant to a timestamp. Returns `None` if the instant is outside the range of the type. This can happen
/// in a layout with many timestamp bits.
pub fn timestamptz(instant: i128) -> Option<TimestampWithTimeZone> {
    let micros = i64::try_from(instant - POSTGRES_EPOCH).ok()?;
    match micros {
        // The type uses these values for infinity, so they are not instants.
        i64::MIN | i64::MAX => None,
        _ => TimestampWithTimeZone::try_from(micros).ok(),
    }
}

/// Returns an interval of `micros` microseconds, or the longest possible interval if `micros` is too large.
pub fn interval(micros: i128) -> Interval {
    Interval::new(0, 0, micros.clamp(i64::MIN.into(), i64::MAX.into()) as i64).expect("microseconds alone are in range")
}

/// Formats an instant in ISO 8601 format, in UTC regardless of the session's time zone. The result is infinity if the
/// instant is outside the range of `timestamptz`.
pub fn utc(instant: i128) -> String {
    match timestamptz(instant) {
        Some(at) => at.to_iso_string_with_timezone("UTC").unwrap_or_default(),
        None if instant < 0 => "-infinity".into(),
        None => "infinity".into(),
    }
}
