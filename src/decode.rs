//! What an ID says, read with this server's layout and epoch or with those that are passed.

use flake::{Parts, Scheme};
use pgrx::prelude::*;
use pgrx::{JsonB, PgTupleDesc};
use serde::Serialize;

use crate::argument::Text;
use crate::failure::Failure;
use crate::faults::{self, Fault};
use crate::identity;
use crate::timestamp::{self, timestamptz};

/// The parts of an ID as a record.
#[pg_extern(
    sql = "CREATE FUNCTION snowflake_decode(id bigint, OUT created_at timestamptz, OUT datacenter_id integer, \
           OUT worker_id integer, OUT sequence integer) RETURNS record STABLE STRICT PARALLEL SAFE LANGUAGE c \
           AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';"
)]
fn snowflake_decode(id: i64, fcinfo: pg_sys::FunctionCallInfo) -> pgrx::composite_type!('static, "record") {
    // Where this server's layout has no such field, its number is 0, as the settings have it.
    record(Decoded::of(id, &identity::get().scheme), Some(0), fcinfo)
}

/// The parts of an ID of a layout.
#[pg_extern(sql = "CREATE FUNCTION snowflake_decode(id bigint, layout text, OUT created_at timestamptz, \
           OUT datacenter_id integer, OUT worker_id integer, OUT sequence integer) RETURNS record \
           IMMUTABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';")]
fn snowflake_decode_layout(
    id: i64,
    layout: Text<'_>,
    fcinfo: pg_sys::FunctionCallInfo,
) -> pgrx::composite_type!('static, "record") {
    record(Decoded::of(id, &layout.scheme()), None, fcinfo)
}

/// The parts of an ID of a layout with another epoch than its own.
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
    record(Decoded::of(id, &layout.scheme_since(epoch)), None, fcinfo)
}

/// The parts of an ID and the settings they were read with.
#[pg_extern(stable, strict, parallel_safe)]
fn snowflake_describe(id: i64) -> JsonB {
    #[derive(Serialize)]
    struct Description {
        id: i64,
        created_at: String,
        unix_ms: i64,
        tick: u64,
        datacenter_id: u32,
        worker_id: u32,
        sequence: u32,
        layout: String,
        epoch: String,
    }
    let scheme = &identity::get().scheme;
    let decoded = Decoded::of(id, scheme);
    let described = Description {
        id,
        created_at: timestamp::utc(decoded.instant),
        // In range: created_at fits timestamptz.
        unix_ms: (decoded.instant / 1_000) as i64,
        tick: decoded.parts.tick,
        datacenter_id: decoded.parts.node.datacenter,
        worker_id: decoded.parts.node.worker,
        sequence: decoded.parts.sequence,
        layout: scheme.layout.to_string(),
        epoch: timestamp::utc(scheme.instant(0)),
    };
    match serde_json::to_value(described) {
        Ok(value) => JsonB(value),
        Err(_) => Failure::Unreachable("a description that is not JSON").raise(),
    }
}

/// The time of an ID.
#[pg_extern(stable, strict, parallel_safe)]
fn snowflake_timestamp(id: i64) -> TimestampWithTimeZone {
    Decoded::of(id, &identity::get().scheme).created_at
}

/// The time of an ID of a layout.
#[pg_extern(immutable, strict, parallel_safe, name = "snowflake_timestamp")]
fn snowflake_timestamp_layout(id: i64, layout: Text<'_>) -> TimestampWithTimeZone {
    Decoded::of(id, &layout.scheme()).created_at
}

/// The time of an ID of a layout with another epoch than its own.
#[pg_extern(immutable, strict, parallel_safe, name = "snowflake_timestamp")]
fn snowflake_timestamp_layout_epoch(id: i64, layout: Text<'_>, epoch: TimestampWithTimeZone) -> TimestampWithTimeZone {
    Decoded::of(id, &layout.scheme_since(epoch)).created_at
}

/// An ID taken apart, with its time.
struct Decoded<'scheme> {
    scheme: &'scheme Scheme,
    created_at: TimestampWithTimeZone,
    instant: i128,
    parts: Parts,
}

impl Decoded<'_> {
    fn of(id: i64, scheme: &Scheme) -> Decoded<'_> {
        let parts = match scheme.split(id) {
            Ok(parts) => parts,
            Err(error) => Failure::NotAnId { id, scheme: *scheme, error }.raise(),
        };
        let mut instant = scheme.instant(parts.tick);
        if faults::on(Fault::DecodeIgnoresEpoch) {
            instant -= scheme.instant(0);
        }
        let created_at = timestamptz(instant).unwrap_or_else(|failure| failure.raise());
        Decoded { scheme, created_at, instant, parts }
    }
}

/// The row that a function declared as `snowflake_decode` returns, with `absent` for a number that the layout has no field for.
#[allow(unsafe_code)]
fn record(
    decoded: Decoded<'_>,
    absent: Option<u32>,
    fcinfo: pg_sys::FunctionCallInfo,
) -> PgHeapTuple<'static, AllocatedByRust> {
    let Decoded { scheme, created_at, parts, .. } = decoded;
    let number = |there: bool, number: u32| if there { Some(number) } else { absent };
    let columns = [
        created_at.into_datum(),
        number(scheme.layout.has_datacenter(), parts.node.datacenter).map(u32::cast_signed).into_datum(),
        number(scheme.layout.has_worker(), parts.node.worker).map(u32::cast_signed).into_datum(),
        parts.sequence.cast_signed().into_datum(),
    ];
    let mut row: pg_sys::TupleDesc = std::ptr::null_mut();
    // SAFETY: `fcinfo` is this call's; the declarations above make the result a record of exactly these four types, none
    // of them passed by reference, and `row` is set when the call says composite.
    let tuple = unsafe {
        let class = pg_sys::get_call_result_type(fcinfo, std::ptr::null_mut(), &mut row);
        if class != pg_sys::TypeFuncClass::TYPEFUNC_COMPOSITE {
            Failure::Unreachable("snowflake_decode is not declared to return a record").raise();
        }
        PgHeapTuple::from_datums(PgTupleDesc::from_pg_copy(pg_sys::BlessTupleDesc(row)), columns)
    };
    tuple.unwrap_or_else(|_| Failure::Unreachable("snowflake_decode is declared with other columns").raise())
}
