//! Decodes IDs with this server's layout and epoch, or with a layout and epoch that the caller passes.

use flake::{IdFormat, Parts};
use pgrx::JsonB;
use pgrx::prelude::*;

use crate::config::identity;
use crate::faults;
use crate::functions::text;
use crate::message::id::IdProblem;
use crate::pg::composite;
use crate::pg::text_arg::Text;
use crate::pg::timestamp::{self, timestamptz};

/// Returns the parts of an ID as a record.
#[pg_extern(
    sql = "CREATE FUNCTION snowflake_decode(id bigint, OUT created_at timestamptz, OUT datacenter_id integer, \
           OUT worker_id integer, OUT sequence integer) RETURNS record STABLE STRICT PARALLEL SAFE LANGUAGE c \
           AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';"
)]
fn snowflake_decode(id: i64, fcinfo: pg_sys::FunctionCallInfo) -> pgrx::composite_type!('static, "record") {
    // If this server's layout has no field for a part, the part is 0, as in the settings.
    record(Decoded::of(id, &identity::get().format), Some(0), fcinfo)
}

/// Returns the parts of an ID in a given layout.
#[pg_extern(sql = "CREATE FUNCTION snowflake_decode(id bigint, layout text, OUT created_at timestamptz, \
           OUT datacenter_id integer, OUT worker_id integer, OUT sequence integer) RETURNS record \
           IMMUTABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';")]
fn snowflake_decode_layout(
    id: i64,
    layout: Text<'_>,
    fcinfo: pg_sys::FunctionCallInfo,
) -> pgrx::composite_type!('static, "record") {
    record(Decoded::of(id, &layout.format()), None, fcinfo)
}

/// Returns the parts of an ID in a given layout, with an epoch other than the layout's own.
#[pg_extern(
    sql = "CREATE FUNCTION snowflake_decode(id bigint, layout text, epoch timestamptz, OUT created_at timestamptz, \
           OUT datacenter_id integer, OUT worker_id integer, OUT sequence integer) RETURNS record \
           IMMUTABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';"
)]
fn snowflake_decode_layout_epoch(
    id: i64,
    layout: Text<'_>,
    epoch: TimestampWithTimeZone,
    fcinfo: pg_sys::FunctionCallInfo,
) -> pgrx::composite_type!('static, "record") {
    record(Decoded::of(id, &layout.format_since(epoch)), None, fcinfo)
}

/// Returns the parts of an ID and the settings that were used to decode it.
#[pg_extern(stable, strict, parallel_safe)]
fn snowflake_describe(id: i64) -> JsonB {
    let format = &identity::get().format;
    Decoded::of(id, format).describe(id, Some(0))
}

/// Returns the parts of an ID in a given layout, and the layout and epoch that were used to decode it.
#[pg_extern(immutable, strict, parallel_safe, name = "snowflake_describe")]
fn snowflake_describe_layout(id: i64, layout: Text<'_>) -> JsonB {
    Decoded::of(id, &layout.format()).describe(id, None)
}

/// Returns the parts of an ID in a given layout, with an epoch other than the layout's own, and the layout and epoch
/// that were used to decode it.
#[pg_extern(immutable, strict, parallel_safe, name = "snowflake_describe")]
fn snowflake_describe_layout_epoch(id: i64, layout: Text<'_>, epoch: TimestampWithTimeZone) -> JsonB {
    Decoded::of(id, &layout.format_since(epoch)).describe(id, None)
}

/// Returns the time of an ID.
#[pg_extern(stable, strict, parallel_safe)]
fn snowflake_timestamp(id: i64) -> TimestampWithTimeZone {
    Decoded::of(id, &identity::get().format).created_at
}

/// Returns the time of an ID in a given layout.
#[pg_extern(immutable, strict, parallel_safe, name = "snowflake_timestamp")]
fn snowflake_timestamp_layout(id: i64, layout: Text<'_>) -> TimestampWithTimeZone {
    Decoded::of(id, &layout.format()).created_at
}

/// Returns the time of an ID in a given layout, with an epoch other than the layout's own.
#[pg_extern(immutable, strict, parallel_safe, name = "snowflake_timestamp")]
fn snowflake_timestamp_layout_epoch(id: i64, layout: Text<'_>, epoch: TimestampWithTimeZone) -> TimestampWithTimeZone {
    Decoded::of(id, &layout.format_since(epoch)).created_at
}

/// The parts and the time of an ID.
struct Decoded<'format> {
    format: &'format IdFormat,
    created_at: TimestampWithTimeZone,
    instant: i128,
    parts: Parts,
}

impl Decoded<'_> {
    fn of(id: i64, format: &IdFormat) -> Decoded<'_> {
        let parts = match format.split(id) {
            Ok(parts) => parts,
            Err(error) => IdProblem::NotAnId { id, format: *format, error }.raise(),
        };
        let instant = faults::without_epoch(format.instant(parts.tick), format);
        let created_at = timestamptz(instant).unwrap_or_else(|| IdProblem::TimestampRange.raise());
        Decoded { format, created_at, instant, parts }
    }

    /// Returns the ID and its parts as JSON. `absent` is the value for a field that the layout does not have.
    fn describe(&self, id: i64, absent: Option<u32>) -> JsonB {
        let Parts { tick, node, sequence } = self.parts;
        JsonB(serde_json::json!({
            // The ID is a string, because JavaScript and many JSON parsers would round a number.
            "id": id.to_string(),
            "text": text::of(id),
            "created_at": timestamp::utc(self.instant),
            // The number is in range, because created_at fits into timestamptz.
            "unix_ms": (self.instant / 1_000) as i64,
            "tick": tick,
            "datacenter_id": if self.format.layout.has_datacenter() { Some(node.datacenter) } else { absent },
            "worker_id": if self.format.layout.has_worker() { Some(node.worker) } else { absent },
            "sequence": sequence,
            "layout": self.format.layout.to_string(),
            "epoch": timestamp::utc(self.format.instant(0)),
        }))
    }
}

/// Returns the result row of a function that is declared like `snowflake_decode`. `absent` is the value for a field
/// that the layout does not have.
fn record(
    decoded: Decoded<'_>,
    absent: Option<u32>,
    fcinfo: pg_sys::FunctionCallInfo,
) -> PgHeapTuple<'static, AllocatedByRust> {
    let Decoded { format, created_at, parts, .. } = decoded;
    let number = |there: bool, number: u32| if there { Some(number) } else { absent };
    let columns = [
        created_at.into_datum(),
        number(format.layout.has_datacenter(), parts.node.datacenter).map(u32::cast_signed).into_datum(),
        number(format.layout.has_worker(), parts.node.worker).map(u32::cast_signed).into_datum(),
        parts.sequence.cast_signed().into_datum(),
    ];
    composite::row(fcinfo, columns)
}
