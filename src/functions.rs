//! The SQL functions: arguments in, errors out, and nothing else.

use flake::{Node, Part, PartError, Parts, Request, Scheme, SchemeError};
use pgrx::prelude::*;
use pgrx::{JsonB, PgTupleDesc};
use serde::Serialize;

use crate::failure::Failure;
use crate::faults::{self, Fault};
use crate::identity;
use crate::issue;
use crate::timestamp::{self, instant, timestamptz};

/// Most IDs one call of `snowflake_nextval_batch` issues: about 2.5 seconds of the default layout's capacity.
const MAX_BATCH: i32 = 10_000_000;

/// Issues one ID.
#[pg_extern(volatile, parallel_safe)]
fn snowflake_nextval() -> i64 {
    issue::draw(Request::UpTo(1)).take().unwrap_or_else(|| Failure::Unreachable("an empty run").raise())
}

/// Issues `count` IDs, increasing but not necessarily consecutive; drawn as they are fetched, a tick's worth at a time.
#[pg_extern(volatile, strict, parallel_safe)]
fn snowflake_nextval_batch(count: i32) -> SetOfIterator<'static, i64> {
    if !(1..=MAX_BATCH).contains(&count) {
        Failure::Count { count, max: MAX_BATCH as u64, more: "For more IDs, call it again." }.raise();
    }
    let mut left = u64::from(count.unsigned_abs());
    let mut issued = issue::draw(Request::UpTo(left));
    SetOfIterator::new(std::iter::from_fn(move || {
        if left == 0 {
            return None;
        }
        let id = issued.take().or_else(|| {
            issued = issue::draw(Request::UpTo(left));
            issued.take()
        });
        left -= 1;
        id
    }))
}

/// Issues `count` consecutive IDs of one tick and returns the first.
#[pg_extern(volatile, strict, parallel_safe)]
fn snowflake_reserve(count: i32) -> i64 {
    let layout = scheme().layout;
    if !layout.sequence_lowest() {
        Failure::NotConsecutive { layout }.raise();
    }
    let max = layout.sequence_capacity();
    match u64::try_from(count) {
        Ok(count) if (1..=max).contains(&count) => issue::draw(Request::InOneTick(count)).take_block(),
        _ => Failure::Count {
            count,
            max,
            more: "A reservation lies inside one tick; for more IDs, use snowflake_nextval_batch.",
        }
        .raise(),
    }
}

/// The last ID issued to this session.
#[pg_extern(volatile, parallel_restricted)]
fn snowflake_currval() -> i64 {
    scheme();
    issue::current().unwrap_or_else(|| Failure::NoCurrentId.raise())
}

/// The parts of an ID as a record.
#[allow(unsafe_code)]
#[pg_extern(
    sql = "CREATE FUNCTION snowflake_decode(id bigint, OUT created_at timestamptz, OUT datacenter_id integer, \
           OUT worker_id integer, OUT sequence integer) RETURNS record STABLE STRICT PARALLEL SAFE LANGUAGE c \
           AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';"
)]
fn snowflake_decode(id: i64, fcinfo: pg_sys::FunctionCallInfo) -> pgrx::composite_type!('static, "record") {
    let Decoded { created_at, parts, .. } = Decoded::of(id);
    let columns = [
        created_at.into_datum(),
        parts.node.datacenter.cast_signed().into_datum(),
        parts.node.worker.cast_signed().into_datum(),
        parts.sequence.cast_signed().into_datum(),
    ];
    let mut row: pg_sys::TupleDesc = std::ptr::null_mut();
    // SAFETY: `fcinfo` is this call's; the declaration above makes the result a record of exactly these four types, none
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
    let scheme = scheme();
    let Decoded { instant, parts, .. } = Decoded::of(id);
    let described = Description {
        id,
        created_at: timestamp::utc(instant),
        // In range: created_at fits timestamptz.
        unix_ms: (instant / 1_000) as i64,
        tick: parts.tick,
        datacenter_id: parts.node.datacenter,
        worker_id: parts.node.worker,
        sequence: parts.sequence,
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
    Decoded::of(id).created_at
}

/// The ID with the given parts.
#[pg_extern(stable, strict, parallel_safe)]
fn snowflake_encode(
    created_at: TimestampWithTimeZone,
    worker_id: i32,
    sequence: i32,
    datacenter_id: default!(i32, 0),
) -> i64 {
    let scheme = scheme();
    let number = |part: Part, value: i32| {
        let max = scheme.layout.max(part) as i64;
        u32::try_from(value).unwrap_or_else(|_| Failure::Part(PartError { part, value: value.into(), max }).raise())
    };
    let node = Node { datacenter: number(Part::Datacenter, datacenter_id), worker: number(Part::Worker, worker_id) };
    let sequence = number(Part::Sequence, sequence);
    let at = instant(created_at);
    scheme.join(at, node, sequence).unwrap_or_else(|error| refuse(scheme, at, error))
}

/// The first ID of an instant's tick.
#[pg_extern(stable, strict, parallel_safe)]
fn snowflake_min_id(at: TimestampWithTimeZone) -> i64 {
    let (scheme, at) = (scheme(), instant(at));
    scheme.min_id(at).unwrap_or_else(|error| refuse(scheme, at, error))
}

/// The last ID of an instant's tick.
#[pg_extern(stable, strict, parallel_safe)]
fn snowflake_max_id(at: TimestampWithTimeZone) -> i64 {
    let (scheme, at) = (scheme(), instant(at));
    scheme.max_id(at).unwrap_or_else(|error| refuse(scheme, at, error))
}

/// The first ID at or after an instant; after the layout's end a number above all its IDs, NULL where there is none.
#[pg_extern(stable, strict, parallel_safe)]
fn snowflake_first_id_from(at: TimestampWithTimeZone) -> Option<i64> {
    scheme().first_id_from(instant(at))
}

/// The last ID before an instant; -1 where there is none.
#[pg_extern(stable, strict, parallel_safe)]
fn snowflake_last_id_before(at: TimestampWithTimeZone) -> i64 {
    scheme().last_id_before(instant(at))
}

/// This server's layout and epoch, or the error that it has none.
fn scheme() -> &'static Scheme {
    &identity::get().scheme
}

/// Raises the error for an instant or a part that has no ID.
fn refuse(scheme: &Scheme, at: i128, error: SchemeError) -> ! {
    match error {
        SchemeError::Part(part) => Failure::Part(part),
        _ => Failure::Instant { at, scheme: *scheme },
    }
    .raise()
}

/// An ID taken apart, with its time.
struct Decoded {
    created_at: TimestampWithTimeZone,
    instant: i128,
    parts: Parts,
}

impl Decoded {
    fn of(id: i64) -> Decoded {
        let scheme = scheme();
        let parts = match scheme.split(id) {
            Ok(parts) => parts,
            Err(error) => Failure::NotAnId { id, scheme: *scheme, error }.raise(),
        };
        let mut instant = scheme.instant(parts.tick);
        if faults::on(Fault::DecodeIgnoresEpoch) {
            instant -= scheme.instant(0);
        }
        let created_at = timestamptz(instant).unwrap_or_else(|failure| failure.raise());
        Decoded { created_at, instant, parts }
    }
}
