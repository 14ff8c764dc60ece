//! Finds the numbers of a series that are missing from a table, for example for an auditor.

use flake::serial::{Field, Template, Unit};
use pgrx::prelude::*;
use pgrx::spi::SpiError;

use crate::functions::series_definition::{Series, SeriesKind};
use crate::message::argument::ArgumentProblem;
use crate::message::serial::SerialProblem;
use crate::message::serial_at_commit::NumberProblem;
use crate::pg::local_setting::LocalSetting;
use crate::pg::locked::{self, Lock};
use crate::pg::relation::{self, ANSWERED};
use crate::pg::text_arg::{self, Text};
use crate::pg::text_value::TextValue;

/// The maximum number of gaps. A longer list would be of no use, and PostgreSQL does not manage the memory for it.
const MAX_GAPS: usize = 100_000;

/// The number of rows to read at a time. It is limited because PostgreSQL does not manage the memory for the rows.
const ROWS: i64 = 1_000;

/// The maximum length of a period in text form. A longer string, which could be a gigabyte in size, does not belong to
/// a counter of a series.
const MAX_PERIOD: usize = 100;

/// A row of the result: the period, and the first and last number of a range of missing numbers.
type Gap = (TextValue, i64, i64);

/// The period whose numbers are being read.
struct PeriodScan {
    key: Vec<u8>,
    /// True if the period matches the template of the series.
    is_valid: bool,
    /// The lowest number that has not been read.
    next: i64,
    /// The last number that was issued, if the series has a counter for the period.
    last: Option<i64>,
}

/// Returns the numbers of each period that are missing from the column, up to the last number that the series has
/// issued.
#[pg_extern(sql = "CREATE FUNCTION snowflake_serial_gaps(relation regclass, key text, series regclass) \
           RETURNS TABLE (period text, first_number bigint, last_number bigint) STABLE PARALLEL RESTRICTED LANGUAGE c \
           AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';")]
fn snowflake_serial_gaps(
    relation: Option<pg_sys::Oid>,
    key: Option<Text<'_>>,
    series: Option<pg_sys::Oid>,
) -> TableIterator<'static, (name!(period, TextValue), name!(first_number, i64), name!(last_number, i64))> {
    // A NULL argument raises an error, because an empty result would mean that there are no gaps.
    let null = |argument, names| -> ! { ArgumentProblem::Null { argument, names }.raise() };
    let table = relation.unwrap_or_else(|| null("relation", "table"));
    let key = key.unwrap_or_else(|| null("key", "column"));
    let series = Series::open(series.unwrap_or_else(|| null("series", "series")), Lock::Naming);
    if series.definition.kind != SeriesKind::Gapless {
        SerialProblem::Dense { series: series.name }.raise();
    }
    let name = locked::name(table).unwrap_or_else(|| ArgumentProblem::no_table(table));
    let (name, column) = (name.quoted(), relation::identifier(&key.name()));
    match relation::column_type(table, key.0) {
        None => NumberProblem::NoColumn { table: name, column, by_trigger: false }.raise(),
        // A cast from a type that is not a string type could run code of a different role.
        Some(kind) if !relation::is_string_type(kind) => NumberProblem::NotText { column }.raise(),
        Some(_) => {}
    }
    let _visible = LocalSetting::without_row_security();
    TableIterator::new(Gaps::read(&series, &name, &column))
}

/// The gaps found so far, ordered by period and number.
struct Gaps<'call> {
    series: &'call Series,
    column: &'call str,
    found: Vec<Gap>,
}

impl Gaps<'_> {
    /// Reads the counters and the serials in one snapshot. PostgreSQL sorts them, so that `work_mem` limits the memory.
    /// The counter of a period comes before its serials.
    fn read(series: &Series, table: &str, column: &str) -> Vec<Gap> {
        let template = &series.definition.template;
        // Without OFFSET 0, PostgreSQL would compute the column again for each use.
        let query = format!(
            "SELECT period, last_number, number
             FROM (SELECT period::pg_catalog.text, last_number::pg_catalog.int8, NULL::pg_catalog.int8 FROM {}
                   WHERE pg_catalog.octet_length(period::pg_catalog.text) OPERATOR(pg_catalog.<=) {MAX_PERIOD}
                   UNION ALL
                   SELECT {}, NULL, {}::pg_catalog.int8
                   FROM (SELECT ({column})::pg_catalog.text COLLATE pg_catalog.\"C\" FROM {table} OFFSET 0) AS serials (serial)
                   WHERE CASE WHEN pg_catalog.octet_length(serial) OPERATOR(pg_catalog.=) {}
                         THEN serial OPERATOR(pg_catalog.~) $1 END)
                 AS found (period, last_number, number)
             ORDER BY period COLLATE pg_catalog.\"C\", number NULLS FIRST",
            series.name,
            period(template),
            field(template, |field| field == Field::Number),
            template.sample().len()
        );
        let mut gaps = Gaps { series, column, found: Vec::new() };
        let mut current = None;
        let arguments = [TextValue(template.pattern()).into()];
        let cursor = Spi::connect(|client| client.open_cursor(&query, &arguments).detach_into_name());
        loop {
            // The rows that were read are freed when the SPI connection ends.
            let read = Spi::connect(|client| {
                let mut cursor = client.find_cursor(&cursor)?;
                let rows = cursor.fetch(ROWS)?;
                let read = rows
                    .map(|row| Ok((row.get::<TextValue>(1)?, row.get::<i64>(2)?, row.get::<i64>(3)?)))
                    .collect::<Result<Vec<_>, SpiError>>()?;
                // The cursor is closed after its last row.
                if !read.is_empty() {
                    cursor.detach_into_name();
                }
                Ok::<_, SpiError>(read)
            })
            .expect(ANSWERED);
            if read.is_empty() {
                gaps.end(current);
                return gaps.found;
            }
            for (key, last, number) in read {
                gaps.note(&mut current, key.expect("a period is not NULL").0, last, number);
            }
        }
    }

    /// Processes a counter, or the number of a serial and the gap before it.
    fn note(&mut self, current: &mut Option<PeriodScan>, key: Vec<u8>, last: Option<i64>, number: Option<i64>) {
        if current.as_ref().is_none_or(|period| period.key != key) {
            self.end(current.take());
            let is_valid = self.series.definition.template.period_of_key(&key).is_some();
            *current = Some(PeriodScan { key, is_valid, next: self.series.definition.start, last: None });
        }
        let period = current.as_mut().expect("a period was begun");
        let Some(number) = number else {
            period.last = last;
            return;
        };
        if period.is_valid {
            // Numbers that were not issued are not gaps.
            let last = period.last.map_or(number - 1, |last| last.min(number - 1));
            self.add(&period.key, period.next, last);
            period.next = period.next.max(number + 1);
        }
    }

    /// Adds the gap at the end of a period, up to the last number that was issued.
    fn end(&mut self, period: Option<PeriodScan>) {
        if let Some(PeriodScan { key, next, last: Some(last), .. }) = period {
            self.add(&key, next, last);
        }
    }

    fn add(&mut self, period: &[u8], first: i64, last: i64) {
        if first > last {
            return;
        }
        if self.found.len() >= MAX_GAPS {
            SerialProblem::ManyGaps { column: self.column.into(), most: MAX_GAPS }.raise();
        }
        self.found.push((TextValue(period.to_vec()), first, last));
    }
}

/// Returns an SQL expression for the period of a serial, in text form.
fn period(template: &Template) -> String {
    if template.unit() == Unit::All {
        return "''".into();
    }
    let century = if template.years().last == 9999 { "" } else { "20" };
    let year = field(template, |field| matches!(field, Field::Year | Field::ShortYear));
    let mut expression = format!("pg_catalog.concat('{century}', {year}");
    let rest = [(Unit::Month, "-", Field::Month), (Unit::Day, "-", Field::Day), (Unit::Hour, " ", Field::Hour)];
    for (_, before, part) in rest.into_iter().filter(|(unit, ..)| *unit <= template.unit()) {
        expression.push_str(&format!(", '{before}', {}", field(template, |field| field == part)));
    }
    expression + ")"
}

/// Returns an SQL expression for the digits of a field of the template.
fn field(template: &Template, is_wanted: impl Fn(Field) -> bool) -> String {
    let positions = template.positions();
    let (_, from, to) =
        positions.into_iter().find(|(field, ..)| is_wanted(*field)).expect("the template has this field");
    let before = text_arg::characters(&template.sample()[..from]);
    format!("pg_catalog.substr(serial, {}, {})", before + 1, to - from)
}
