//! A series: its definition, the period that contains a time, and its next number.

use std::ffi::CStr;

use flake::period_lengths;
use flake::serial::{Civil, Period, Template, Unit};
use pgrx::datum::Date;
use pgrx::prelude::*;

use crate::faults::{self, Fault};
use crate::fleet::grant;
use crate::functions::series_rights;
use crate::message::argument::ArgumentProblem;
use crate::message::serial::SerialProblem;
use crate::message::serial_at_commit::NumberProblem;
use crate::pg::civil::Zone;
use crate::pg::locked::{self, Lock};
use crate::pg::text_arg::{self, Text};
use crate::pg::text_value::TextValue;
use crate::pg::{plans, recovery, relation, timestamp};
use crate::segments::draw;
use crate::segments::facts::{self, Asked, MAX_ENCODED, MAX_TAG, PERIOD};

/// The function that the triggers on a series call. The arguments of one of these triggers define the series.
pub const TRIGGER_FUNCTION: &CStr = c"snowflake_series_row";

/// The columns of a series, with their types.
pub const COLUMNS: [(&[u8], pg_sys::Oid); 2] = [(b"period", pg_sys::TEXTOID), (b"last_number", pg_sys::INT8OID)];

/// The earliest and the latest start of a period that the registry accepts, in microseconds since the Unix epoch. They
/// correspond to the years 1 to 9999 in UTC. In other time zones, a period of these years can start outside this range.
const BEGINS: (i128, i128) = (-62_135_596_800_000_000, 253_402_300_799_000_000);

/// The time after the end of a period during which any role can still create the period, in microseconds: 100 days.
const RECENT: i64 = 100 * 86_400 * 1_000_000;

/// How a series issues numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeriesKind {
    /// The number is drawn as part of the transaction.
    Gapless,
    /// The numbers of each period are a segment. Its tag contains this text, which is in the database's encoding.
    Dense { tag: Vec<u8> },
}

impl SeriesKind {
    /// The names of all kinds, for messages.
    pub const NAMES: &'static str = "dense, gapless";

    /// The maximum length of a tag in UTF-8 bytes. It leaves room for the text of a period.
    pub const MAX_TAG: usize = MAX_TAG - PERIOD.len() - " 2026-11-22 14".len();

    /// Returns the kind with this name, without a tag.
    pub fn of(name: &[u8]) -> Option<SeriesKind> {
        match name {
            b"gapless" => Some(SeriesKind::Gapless),
            b"dense" => Some(SeriesKind::Dense { tag: Vec::new() }),
            _ => None,
        }
    }

    pub fn name(&self) -> &'static str {
        match self {
            SeriesKind::Gapless => "gapless",
            SeriesKind::Dense { .. } => "dense",
        }
    }
}

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

/// The definition of a series.
pub struct Definition {
    pub template: Template,
    /// The template as text, in the database's encoding.
    pub form: Vec<u8>,
    pub kind: SeriesKind,
    pub zone: Zone,
    /// The first number of each period.
    pub start: i64,
}

impl Definition {
    /// Parses the arguments of the trigger. Returns `None` if they are not a definition.
    pub fn of<T: AsRef<[u8]>>(arguments: &[T]) -> Option<Definition> {
        let [form, kind, zone, start, tag @ ..] = arguments else { return None };
        let template = Template::parse(form.as_ref()).ok()?;
        let start = str::from_utf8(start.as_ref()).ok()?.parse().ok()?;
        let zone = Zone::of(zone.as_ref())?;
        let kind = match (SeriesKind::of(kind.as_ref())?, tag) {
            (SeriesKind::Gapless, []) => SeriesKind::Gapless,
            (SeriesKind::Dense { .. }, [tag]) if (1..=MAX_ENCODED).contains(&tag.as_ref().len()) => {
                SeriesKind::Dense { tag: tag.as_ref().to_vec() }
            }
            _ => return None,
        };
        Some(Definition { template, form: form.as_ref().to_vec(), kind, zone, start })
    }

    /// Returns the arguments of the trigger, as a list of string constants.
    pub fn arguments(&self) -> Vec<u8> {
        let (zone, start) = (self.zone.name(), self.start.to_string());
        let mut texts = vec![&self.form[..], self.kind.name().as_bytes(), zone.as_bytes(), start.as_bytes()];
        if let SeriesKind::Dense { tag } = &self.kind {
            texts.push(tag);
        }
        texts.into_iter().map(relation::literal).collect::<Vec<_>>().join(&b", "[..])
    }
}

/// An existing series.
pub struct Series {
    pub table: pg_sys::Oid,
    /// The quoted schema and name.
    pub name: String,
    pub definition: Definition,
}

impl Series {
    /// Returns a series. Raises an error if the table is not a series. To draw numbers, the series must be locked for
    /// writing.
    pub fn open(table: pg_sys::Oid, lock: Lock) -> Series {
        if lock == Lock::Writing {
            if recovery::in_recovery() {
                SerialProblem::Standby.raise();
            }
            locked::check_writable(table);
        }
        let arguments = locked::trigger_arguments(table, TRIGGER_FUNCTION, lock);
        let name =
            relation::of_relation(table).unwrap_or_else(|| ArgumentProblem::NoTable { table: table.to_u32() }.raise());
        let name = name.quoted();
        match arguments {
            None => SerialProblem::NotASeries { relation: name }.raise(),
            Some(arguments) => match Definition::of(&arguments) {
                Some(definition) => {
                    let has = |(column, kind)| relation::column_type(table, column) == Some(kind);
                    if definition.kind == SeriesKind::Gapless && !COLUMNS.into_iter().all(has) {
                        SerialProblem::Columns { series: name }.raise();
                    }
                    Series { table, name, definition }
                }
                None => SerialProblem::Definition { series: name }.raise(),
            },
        }
    }

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
        let number = plans::first(&statement, &arguments, |row| row.get::<i64>(1)).flatten();
        // A trigger may have skipped the row.
        number.unwrap_or_else(|| NumberProblem::NotStored { table: self.name.clone(), serial: period.into() }.raise())
    }

    /// Returns the period and the number of a serial.
    pub fn read(&self, serial: &[u8]) -> (Period, i64) {
        self.definition.template.read(serial).unwrap_or_else(|error| {
            SerialProblem::NotASerial {
                text: text_arg::shown(serial),
                series: self.name.clone(),
                template: text_arg::shown(&self.definition.form),
                error,
            }
            .raise()
        })
    }
}
