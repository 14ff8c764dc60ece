//! Divides time into steps of an `interval`. The steps are in UTC regardless of the session's time zone, because the
//! bounds of partitions never change.

use flake::IdFormat;
use jiff::civil::{DateTime, date};
use jiff::tz::Offset;
use jiff::{Span, Timestamp};
use pgrx::prelude::*;

use crate::message::partition::{PartitionProblem, StepProblem};

/// The number of microseconds in a minute.
const MINUTE: i64 = 60_000_000;

/// The number of microseconds in a day. UTC has no daylight saving time, and PostgreSQL does not support leap seconds.
const DAY: i64 = 1_440 * MINUTE;

/// A positive interval.
#[derive(Clone, Copy)]
pub struct PartitionStep {
    months: i32,
    micros: i64,
}

impl PartitionStep {
    /// Converts an interval to a step. Raises an error if the interval cannot be used as a step or is shorter than a
    /// tick of the format. Calendar months and exact durations cannot be combined, because the result of adding "1
    /// month 1 day" to the 31st would depend on the order.
    pub fn of(interval: &Interval, format: &IdFormat) -> PartitionStep {
        let exact = i64::from(interval.days()).checked_mul(DAY).and_then(|days| days.checked_add(interval.micros()));
        let problem = match (interval.months(), exact) {
            (_, None) => StepProblem::TooLong,
            (..=0, Some(..=0)) => StepProblem::NotPositive,
            (0, Some(exact)) if (exact as u64) < format.layout.tick().micros() => StepProblem::UnderATick,
            (months, Some(micros)) if months == 0 || micros == 0 => return PartitionStep { months, micros },
            _ => StepProblem::Mixed,
        };
        PartitionProblem::Step { problem }.raise()
    }

    /// Returns the instant that is `count` steps after `from`, or `None` if that instant is beyond the calendar.
    pub fn after(&self, from: i128, count: i64) -> Option<i128> {
        if self.months == 0 {
            return i128::from(self.micros).checked_mul(count.into())?.checked_add(from);
        }
        let months = Span::new().try_months(i64::from(self.months).checked_mul(count)?).ok()?;
        Some(instant(civil(from)?.checked_add(months).ok()?))
    }

    /// Returns the last instant at or before `at` that is a whole number of steps from the start of the year 2000.
    /// Steps in months are counted from the first day of that year. Other steps are counted from its first Monday, so
    /// that days start at midnight and weeks start on Mondays. Returns `None` if the instant is beyond the calendar.
    pub fn begin(&self, at: i128) -> Option<i128> {
        let step = self.months;
        if step == 0 {
            let origin = instant(date(2000, 1, 3).at(0, 0, 0, 0));
            return Some(at - (at - origin).rem_euclid(self.micros.into()));
        }
        let now = civil(at)?;
        let months = (i64::from(now.year()) - 2000) * 12 + i64::from(now.month()) - 1;
        self.after(instant(date(2000, 1, 1).at(0, 0, 0, 0)), months.div_euclid(step.into()))
    }

    /// Returns the suffix for the name of a partition that starts at `at`, or `None` if the step is not a whole number
    /// of minutes.
    pub fn name(&self, at: i128) -> Option<String> {
        let format = match self.micros {
            micros if micros % DAY == 0 => "%Y%m%d",
            micros if micros % MINUTE == 0 => "%Y%m%d_%H%M",
            _ => return None,
        };
        Some(civil(at)?.strftime(format).to_string())
    }
}

/// Returns the last instant of the calendar, in the year 9999.
pub fn end() -> i128 {
    Timestamp::MAX.as_microsecond().into()
}

fn civil(at: i128) -> Option<DateTime> {
    let at = Timestamp::from_microsecond(i64::try_from(at).ok()?).ok()?;
    Some(Offset::UTC.to_datetime(at))
}

fn instant(at: DateTime) -> i128 {
    // Every civil time that comes from a timestamp can be converted back to a timestamp, except within an hour of the
    // ends of the calendar.
    Offset::UTC.to_timestamp(at).map_or(i128::MAX / 4, |at| at.as_microsecond().into())
}
