//! The next serial of a series: the period that contains a time, and its next number. Transactions that take numbers of
//! one period of a gapless series wait for each other here.

use flake::period_lengths;
use flake::serial::{Civil, Period, Unit};
use pgrx::datum::Date;
use pgrx::prelude::*;

use crate::faults::{self, Fault};
use crate::fleet::grant;
use crate::functions::series_definition::{Definition, Series, SeriesKind};
use crate::functions::series_rights;
use crate::message::argument::ArgumentProblem;
use crate::message::serial::SerialProblem;
use crate::message::serial_at_commit::NumberProblem;
use crate::pg::text_arg::Text;
use crate::pg::text_value::TextValue;
use crate::pg::{bound_plan, timestamp};
use crate::segments::draw;
use crate::segments::facts::{self, Asked, PERIOD};

/// The earliest and the latest start of a period that the registry accepts, in microseconds since the Unix epoch. They
/// correspond to the years 1 to 9999 in UTC. In other time zones, a period of these years can start outside this range.
const BEGINS: (i128, i128) = (-62_135_596_800_000_000, 253_402_300_799_000_000);

/// The time after the end of a period during which any role can still create the period, in microseconds: 100 days.
const RECENT: i64 = 100 * 86_400 * 1_000_000;

/// A time that determines a period.
#[derive(Clone, Copy)]
pub enum PeriodTime {
    /// An instant, in microseconds since the Unix epoch.
    Instant(i128),
    /// A calendar day, represented by its start in UTC.
    Day(i128),
}

impl PeriodTime {
    pub fn instant(at: TimestampWithTimeZone) -> PeriodTime {
        PeriodTime::Instant(timestamp::instant(at))
    }

    pub fn day(at: Date) -> PeriodTime {
        PeriodTime::Day(timestamp::day(at))
    }
}

impl Series {
    /// Issues the next serial of the period that contains a time. `schema` is the extension's schema. `by_owner` is
    /// true if the owner of the series requests the number.
    pub fn next(&self, at: PeriodTime, schema: pg_sys::Oid, by_owner: bool) -> TextValue {
        let period = self.period(at);
        let number = match &self.definition.kind {
            SeriesKind::Gapless => self.count(&period.key()),
            SeriesKind::Dense { tag } => {
                series_rights::check(self.table, tag, schema).unwrap_or_else(|problem| problem.raise());
                self.draw(tag, period, by_owner)
            }
        };
        let serial = self.definition.template.format(period, number).unwrap_or_else(|overflow| {
            let (series, period) = (self.name.clone(), period.key());
            SerialProblem::Overflow { series, period, number, max: overflow.max }.raise()
        });
        TextValue(serial)
    }

    /// Returns the period that contains a time.
    fn period(&self, at: PeriodTime) -> Period {
        let template = &self.definition.template;
        let (instant, offset) = match at {
            PeriodTime::Instant(instant) => (instant, self.definition.zone.offset(instant)),
            PeriodTime::Day(_) if template.unit() == flake::serial::Unit::Hour => {
                SerialProblem::DateForHours { series: self.name.clone() }.raise()
            }
            PeriodTime::Day(instant) => (instant, 0),
        };
        let years = template.years();
        let period = Civil::of(instant, offset).map_or(Err(years), |civil| template.period(civil));
        period.unwrap_or_else(|years| SerialProblem::Year { at: instant, years }.raise())
    }

    /// Draws a number from the period's segment. If the segment does not exist, the registry creates it and keeps it
    /// forever. Only the owner of the series can create a period that ended long ago, because other roles could
    /// otherwise fill the registry. A series with one period for all time has one segment, which its owner creates.
    fn draw(&self, tag: &[u8], period: Period, by_owner: bool) -> i64 {
        let Definition { template, zone, start, .. } = &self.definition;
        if template.unit() == Unit::All {
            return draw::draw(Text(tag), || None);
        }
        draw::draw(Text(&[PERIOD, tag, b" ", period.key().as_bytes()].concat()), || {
            // All servers with this definition compute the same instant.
            let begins = |period: Period| zone.begin(period.start().in_utc()).clamp(BEGINS.0, BEGINS.1);
            let recent = i128::from(grant::now() - RECENT);
            let oldest = Civil::of(recent, zone.offset(recent)).and_then(|civil| template.period(civil).ok());
            let is_recent = oldest.is_some_and(|oldest| begins(period) >= begins(oldest));
            let creates = by_owner || is_recent || faults::on(Fault::PastByAnyRole);
            let begins = i64::try_from(begins(period)).expect("years have four digits");
            let lengths = period_lengths(u64::try_from(template.max() - start).unwrap_or(0) + 1);
            Some(Asked { period: facts::PeriodTag { begins, start: *start, lengths }, creates })
        })
    }

    /// Increments the counter of a period in the current transaction. If another transaction that has not ended yet has
    /// incremented it, this function waits for that transaction to end, as UPDATE does.
    fn count(&self, period: &str) -> i64 {
        let statement = format!(
            "INSERT INTO {} AS counter (period, last_number) VALUES ($1, $2)
             ON CONFLICT (period) DO UPDATE SET last_number = counter.last_number OPERATOR(pg_catalog.+) 1
             RETURNING counter.last_number",
            self.name
        );
        let arguments = [TextValue::from(period.to_string()).into(), self.definition.start.into()];
        let number =
            bound_plan::first(self.table, statement, &arguments, ArgumentProblem::name_changed, |row| row.get(1));
        // A trigger may have skipped the row.
        number
            .flatten()
            .unwrap_or_else(|| NumberProblem::NotStored { table: self.name.clone(), serial: period.into() }.raise())
    }
}
