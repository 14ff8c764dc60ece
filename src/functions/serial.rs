//! Issues the next serial of a series, and parses serials.

use pgrx::datum::Date;
use pgrx::prelude::*;

use crate::functions::series_definition::Series;
use crate::functions::series_next::PeriodTime;
use crate::pg::function::Called;
use crate::pg::locked::Lock;
use crate::pg::text_arg::Text;
use crate::pg::text_value::TextValue;
use crate::pg::versions;

/// Issues the next serial of the period that contains `at`.
#[pg_extern(
    sql = "CREATE FUNCTION snowflake_serial(series regclass, at timestamptz DEFAULT pg_catalog.now()) RETURNS text \
           VOLATILE STRICT PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';"
)]
fn snowflake_serial(called: Called, series: pg_sys::Oid, at: TimestampWithTimeZone) -> TextValue {
    Series::open(series, Lock::Writing).next(PeriodTime::instant(at), called.schema(), versions::owns(series))
}

/// Issues the next serial of the period that contains the day `at`. No time zone is needed, because the day is a
/// calendar day.
#[pg_extern(sql = "CREATE FUNCTION snowflake_serial(series regclass, at date) RETURNS text \
                   VOLATILE STRICT PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';")]
fn snowflake_serial_of_day(called: Called, series: pg_sys::Oid, at: Date) -> TextValue {
    Series::open(series, Lock::Writing).next(PeriodTime::day(at), called.schema(), versions::owns(series))
}

/// Returns the period and the number of a serial.
#[pg_extern(
    sql = "CREATE FUNCTION snowflake_serial_parse(series regclass, serial text) RETURNS TABLE (period text, number bigint) \
           STABLE STRICT PARALLEL SAFE ROWS 1 LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';"
)]
fn snowflake_serial_parse(
    series: pg_sys::Oid,
    serial: Text<'_>,
) -> TableIterator<'static, (name!(period, TextValue), name!(number, i64))> {
    let (period, number) = Series::open(series, Lock::Reading).read(serial.0);
    TableIterator::once((period.key().into(), number))
}
