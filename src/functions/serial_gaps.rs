//! The numbers of a series that a table lacks: what an auditor asks for.

use std::collections::BTreeMap;

use pgrx::prelude::*;
use pgrx::spi::SpiError;

use crate::functions::series_definition::{Kind, Series, raise};
use crate::message::error::Error;
use crate::message::serial_problem::SerialProblem;
use crate::pg::local_setting::LocalSetting;
use crate::pg::locked::Lock;
use crate::pg::relation::{self, ANSWERED};
use crate::pg::text_arg::Text;
use crate::pg::text_value::TextValue;

/// The maximum number of gaps. More of them would not be read, and the memory for them is not PostgreSQL's.
const MAX_GAPS: usize = 100_000;

/// How many rows are read at a time.
const ROWS: i64 = 10_000;

/// A row of the result: the period, and the first and the last of consecutive numbers that are missing.
type Gap = (TextValue, i64, i64);

/// The numbers of one period.
struct Numbers {
    /// The lowest number that has not been read.
    next: i64,
    /// The last number that was issued, if the series has a counter for the period.
    last: Option<i64>,
}

/// Returns the numbers of each period that the column lacks, up to the last number that the series has issued.
#[pg_extern(sql = "CREATE FUNCTION snowflake_serial_gaps(relation regclass, key text, series regclass) \
           RETURNS TABLE (period text, first_number bigint, last_number bigint) STABLE PARALLEL RESTRICTED LANGUAGE c \
           AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';")]
#[allow(clippy::type_complexity)]
fn snowflake_serial_gaps(
    relation: Option<pg_sys::Oid>,
    key: Option<Text<'_>>,
    series: Option<pg_sys::Oid>,
) -> TableIterator<'static, (name!(period, TextValue), name!(first_number, i64), name!(last_number, i64))> {
    // A NULL argument is an error, because an empty result would mean that there are no gaps.
    let null = |argument, names| -> ! { Error::NullArgument { argument, names }.raise() };
    let table = relation.unwrap_or_else(|| null("relation", "table"));
    let key = key.unwrap_or_else(|| null("key", "column"));
    let series = Series::open(series.unwrap_or_else(|| null("series", "series")), Lock::Reading);
    if series.definition.kind != Kind::Gapless {
        raise(SerialProblem::Dense { series: series.name });
    }
    let name = relation::of_relation(table).unwrap_or_else(|| Error::NoTable { table: table.to_u32() }.raise());
    let (name, column) = (name.quoted(), relation::identifier(&key.name()));
    if relation::column_type(table, key.0).is_none() {
        raise(SerialProblem::NoColumn { table: name, column, by_trigger: false });
    }
    let _visible = LocalSetting::without_row_security();
    TableIterator::new(gaps(&series, &name, &column))
}

/// Reads the counters and the serials with one snapshot. The serials of a period come in the order of their numbers.
fn gaps(series: &Series, table: &str, column: &str) -> Vec<Gap> {
    let query = format!(
        "SELECT period, last_number, serial
         FROM (SELECT period::pg_catalog.text, last_number::pg_catalog.int8, NULL::pg_catalog.text FROM {}
               UNION ALL
               SELECT NULL, NULL, ({column})::pg_catalog.text FROM {table} WHERE {column} IS NOT NULL)
             AS found (period, last_number, serial)
         ORDER BY serial COLLATE pg_catalog.\"C\" NULLS FIRST",
        series.name
    );
    let (mut periods, mut gaps) = (BTreeMap::new(), Vec::new());
    let cursor = Spi::connect(|client| client.open_cursor(&query, &[]).detach_into_name());
    loop {
        // The rows that were read are freed when the connection to SPI ends.
        let read = Spi::connect(|client| {
            let mut cursor = client.find_cursor(&cursor)?;
            let rows = cursor.fetch(ROWS)?;
            let read = rows
                .map(|row| Ok((row.get::<TextValue>(1)?, row.get::<i64>(2)?, row.get::<TextValue>(3)?)))
                .collect::<Result<Vec<_>, SpiError>>()?;
            // The cursor closes after its last row.
            if !read.is_empty() {
                cursor.detach_into_name();
            }
            Ok::<_, SpiError>(read)
        })
        .expect(ANSWERED);
        if read.is_empty() {
            break;
        }
        for (period, last, serial) in read {
            match (period, serial) {
                (Some(period), _) => {
                    periods.insert(period.0, Numbers { next: series.definition.start, last });
                }
                (None, Some(serial)) => found(series, &serial.0, &mut periods, &mut gaps),
                (None, None) => {}
            }
        }
        if gaps.len() > MAX_GAPS {
            raise(SerialProblem::ManyGaps { column: column.into(), most: MAX_GAPS });
        }
    }
    let rest =
        periods.into_iter().filter_map(|(period, Numbers { next, last })| Some((TextValue(period), next, last?)));
    gaps.extend(rest.filter(|(_, next, last)| next <= last));
    gaps.sort_by(|one, other| (&one.0.0, one.1).cmp(&(&other.0.0, other.1)));
    gaps
}

/// Notes a serial, and the gap before it. A text that is not a serial of the series stands for no number.
fn found(series: &Series, serial: &[u8], periods: &mut BTreeMap<Vec<u8>, Numbers>, gaps: &mut Vec<Gap>) {
    let Ok((period, number)) = series.definition.template.read(serial) else { return };
    let period = period.key().into_bytes();
    let numbers = periods.entry(period.clone()).or_insert(Numbers { next: series.definition.start, last: None });
    // A number that was not issued has no gap before it.
    let last = numbers.last.map_or(number - 1, |last| last.min(number - 1));
    if numbers.next <= last {
        gaps.push((TextValue(period), numbers.next, last));
    }
    numbers.next = numbers.next.max(number + 1);
}
