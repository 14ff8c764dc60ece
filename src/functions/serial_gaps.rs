//! Finds the numbers of a series that are missing from a table, for example for an auditor.

use std::iter::Peekable;
use std::vec;

use flake::serial::{Field, Template, Unit};
use pgrx::datum::DatumWithOid;
use pgrx::prelude::*;
use pgrx::spi::SpiHeapTupleData;

use crate::functions::series_definition::{Series, SeriesKind};
use crate::message::argument::ArgumentProblem;
use crate::message::serial::SerialProblem;
use crate::message::serial_at_commit::NumberProblem;
use crate::pg::local_setting::LocalSetting;
use crate::pg::locked::{self, Lock};
use crate::pg::pinned_cursor::PinnedCursor;
use crate::pg::relation;
use crate::pg::role::As;
use crate::pg::text_arg::{self, Text};
use crate::pg::text_value::TextValue;

/// The maximum number of gaps. A longer list would be of no use, and PostgreSQL does not manage the memory for it.
const MAX_GAPS: usize = 100_000;

/// The number of rows to read at a time. It is limited because PostgreSQL does not manage the memory for the rows.
const ROWS: i64 = 1_000;

/// The maximum length of a period in text form. A longer string, which could be a gigabyte in size, does not belong to
/// a counter of a series.
const MAX_PERIOD: i32 = 100;

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
    let counters = Rows::of_counters(&series).peekable();
    let serials = Rows::of_serials(table, &name, &column, &series.definition.template).peekable();
    TableIterator::new(Gaps::find(&series, &column, counters, serials))
}

/// A period in text form, and its last number, or the number of one of its serials.
type Row = (Vec<u8>, Option<i64>);

/// The rows of a query on one table, read with the snapshot of the calling statement. If the caller is a superuser, the
/// query runs as the owner of the table. PostgreSQL sorts the rows, so that `work_mem` limits the memory.
struct Rows {
    table: pg_sys::Oid,
    cursor: PinnedCursor,
    read: vec::IntoIter<Row>,
}

impl Rows {
    /// Returns the periods that have a counter, in their order.
    fn of_counters(series: &Series) -> Rows {
        let query = format!(
            "SELECT period::pg_catalog.text, last_number::pg_catalog.int8 FROM {}
             WHERE pg_catalog.octet_length(period::pg_catalog.text) OPERATOR(pg_catalog.<=) $1
             ORDER BY period::pg_catalog.text COLLATE pg_catalog.\"C\"",
            series.name
        );
        Rows::open(series.table, &query, &[MAX_PERIOD.into()])
    }

    /// Returns the serials that match a template, in the order of their periods and numbers.
    fn of_serials(table: pg_sys::Oid, name: &str, column: &str, template: &Template) -> Rows {
        // Without OFFSET 0, PostgreSQL would compute the column again for each use. The condition is always true: its
        // parameter is next to the name of the table.
        let query = format!(
            "SELECT {} COLLATE pg_catalog.\"C\", {}::pg_catalog.int8
             FROM (SELECT ({column})::pg_catalog.text COLLATE pg_catalog.\"C\" FROM {name} WHERE $1 IS NOT NULL OFFSET 0)
                   AS serials (serial)
             WHERE CASE WHEN pg_catalog.octet_length(serial) OPERATOR(pg_catalog.=) {}
                   THEN serial OPERATOR(pg_catalog.~) $1 END
             ORDER BY 1, 2",
            period(template),
            field(template, |field| field == Field::Number),
            template.sample().len()
        );
        Rows::open(table, &query, &[TextValue(template.pattern()).into()])
    }

    fn open(table: pg_sys::Oid, query: &str, arguments: &[DatumWithOid]) -> Rows {
        let _reader = As::reader(table);
        Rows {
            table,
            cursor: PinnedCursor::open(table, query, arguments, ArgumentProblem::name_changed),
            read: Vec::new().into_iter(),
        }
    }
}

impl Iterator for Rows {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        if self.read.as_slice().is_empty() {
            let _reader = As::reader(self.table);
            let row = |row: SpiHeapTupleData<'_>| {
                Ok((row.get::<TextValue>(1)?.expect("a period is not NULL").0, row.get(2)?))
            };
            self.read = self.cursor.fetch(ROWS, row).into_iter();
        }
        self.read.next()
    }
}

/// The gaps found so far, ordered by period and number.
struct Gaps<'call> {
    series: &'call Series,
    column: &'call str,
    found: Vec<Gap>,
}

impl Gaps<'_> {
    /// Merges the counters and the serials. The counter of a period comes before its serials.
    fn find(series: &Series, column: &str, mut counters: Peekable<Rows>, mut serials: Peekable<Rows>) -> Vec<Gap> {
        let mut gaps = Gaps { series, column, found: Vec::new() };
        let mut current = None;
        loop {
            let counter = counters.next_if(|(key, _)| serials.peek().is_none_or(|(next, _)| key <= next));
            if let Some((key, last)) = counter {
                gaps.period(&mut current, key).last = last;
            } else if let Some((key, number)) = serials.next() {
                let number = number.expect("the number of a serial is not NULL");
                gaps.note(&mut current, key, number);
            } else {
                gaps.end(current);
                return gaps.found;
            }
        }
    }

    /// Returns the scan of a period, and ends the scan of the one before it.
    fn period<'scan>(&mut self, current: &'scan mut Option<PeriodScan>, key: Vec<u8>) -> &'scan mut PeriodScan {
        if current.as_ref().is_none_or(|period| period.key != key) {
            self.end(current.take());
        }
        let definition = &self.series.definition;
        current.get_or_insert_with(|| {
            let is_valid = definition.template.period_of_key(&key).is_some();
            PeriodScan { key, is_valid, next: definition.start, last: None }
        })
    }

    /// Processes the number of a serial, and the gap before it.
    fn note(&mut self, current: &mut Option<PeriodScan>, key: Vec<u8>, number: i64) {
        let period = self.period(current, key);
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
