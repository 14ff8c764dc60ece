//! Returns IDs for an instant: the ID with given parts, the first and last ID of the tick, and the bounds of a time
//! range.

use flake::{FormatError, IdFormat, Node, Part, PartError};
use pgrx::prelude::*;

use crate::config::identity;
use crate::message::id::IdProblem;
use crate::pg::text_arg::Text;
use crate::pg::timestamp::instant;

/// Returns the ID with the given parts.
#[pg_extern(stable, strict, parallel_safe)]
fn snowflake_encode(
    created_at: TimestampWithTimeZone,
    worker_id: i32,
    sequence: i32,
    datacenter_id: default!(i32, 0),
) -> i64 {
    encode(own(), created_at, datacenter_id, worker_id, sequence)
}

/// Returns the ID with the given parts and datacenter ID 0 in a given layout.
#[pg_extern(immutable, strict, parallel_safe, name = "snowflake_encode")]
fn snowflake_encode_layout(created_at: TimestampWithTimeZone, worker_id: i32, sequence: i32, layout: Text<'_>) -> i64 {
    encode(&layout.format(), created_at, 0, worker_id, sequence)
}

/// Returns the ID with the given parts and datacenter ID 0 in a given layout, with an epoch other than the layout's
/// own.
#[pg_extern(immutable, strict, parallel_safe, name = "snowflake_encode")]
fn snowflake_encode_layout_epoch(
    created_at: TimestampWithTimeZone,
    worker_id: i32,
    sequence: i32,
    layout: Text<'_>,
    epoch: TimestampWithTimeZone,
) -> i64 {
    encode(&layout.format_since(epoch), created_at, 0, worker_id, sequence)
}

/// Returns the ID with the given parts in a given layout.
#[pg_extern(immutable, strict, parallel_safe, name = "snowflake_encode")]
fn snowflake_encode_datacenter_layout(
    created_at: TimestampWithTimeZone,
    worker_id: i32,
    sequence: i32,
    datacenter_id: i32,
    layout: Text<'_>,
) -> i64 {
    encode(&layout.format(), created_at, datacenter_id, worker_id, sequence)
}

/// Returns the ID with the given parts in a given layout, with an epoch other than the layout's own.
#[pg_extern(immutable, strict, parallel_safe, name = "snowflake_encode")]
fn snowflake_encode_datacenter_layout_epoch(
    created_at: TimestampWithTimeZone,
    worker_id: i32,
    sequence: i32,
    datacenter_id: i32,
    layout: Text<'_>,
    epoch: TimestampWithTimeZone,
) -> i64 {
    encode(&layout.format_since(epoch), created_at, datacenter_id, worker_id, sequence)
}

/// Returns the first ID in an instant's tick.
#[pg_extern(stable, strict, parallel_safe)]
fn snowflake_min_id(at: TimestampWithTimeZone) -> i64 {
    min_id(own(), at)
}

/// Returns the first ID in an instant's tick in a given layout.
#[pg_extern(immutable, strict, parallel_safe, name = "snowflake_min_id")]
fn snowflake_min_id_layout(at: TimestampWithTimeZone, layout: Text<'_>) -> i64 {
    min_id(&layout.format(), at)
}

/// Returns the first ID in an instant's tick in a given layout, with an epoch other than the layout's own.
#[pg_extern(immutable, strict, parallel_safe, name = "snowflake_min_id")]
fn snowflake_min_id_layout_epoch(at: TimestampWithTimeZone, layout: Text<'_>, epoch: TimestampWithTimeZone) -> i64 {
    min_id(&layout.format_since(epoch), at)
}

/// Returns the last ID in an instant's tick.
#[pg_extern(stable, strict, parallel_safe)]
fn snowflake_max_id(at: TimestampWithTimeZone) -> i64 {
    max_id(own(), at)
}

/// Returns the last ID in an instant's tick in a given layout.
#[pg_extern(immutable, strict, parallel_safe, name = "snowflake_max_id")]
fn snowflake_max_id_layout(at: TimestampWithTimeZone, layout: Text<'_>) -> i64 {
    max_id(&layout.format(), at)
}

/// Returns the last ID in an instant's tick in a given layout, with an epoch other than the layout's own.
#[pg_extern(immutable, strict, parallel_safe, name = "snowflake_max_id")]
fn snowflake_max_id_layout_epoch(at: TimestampWithTimeZone, layout: Text<'_>, epoch: TimestampWithTimeZone) -> i64 {
    max_id(&layout.format_since(epoch), at)
}

/// Returns the first ID at or after an instant. If the instant is after the end of the layout, returns a number above
/// all IDs of the layout, or NULL if `bigint` has no such number.
#[pg_extern(stable, strict, parallel_safe)]
fn snowflake_first_id_from(at: TimestampWithTimeZone) -> Option<i64> {
    own().first_id_from(instant(at))
}

/// Returns the last ID before an instant, or -1 if there is no such ID.
#[pg_extern(stable, strict, parallel_safe)]
fn snowflake_last_id_before(at: TimestampWithTimeZone) -> i64 {
    own().last_id_before(instant(at))
}

/// Returns this server's layout and epoch. Raises an error if the library is not preloaded.
fn own() -> &'static IdFormat {
    &identity::get().format
}

fn encode(format: &IdFormat, created_at: TimestampWithTimeZone, datacenter: i32, worker: i32, sequence: i32) -> i64 {
    let number = |part: Part, value: i32| {
        let max = format.layout.max(part) as i64;
        let error = PartError { part, value: value.into(), max };
        u32::try_from(value).unwrap_or_else(|_| IdProblem::Part { error, layout: format.layout }.raise())
    };
    let node = Node { datacenter: number(Part::Datacenter, datacenter), worker: number(Part::Worker, worker) };
    let sequence = number(Part::Sequence, sequence);
    let at = instant(created_at);
    format.join(at, node, sequence).unwrap_or_else(|error| refuse(format, at, error))
}

fn min_id(format: &IdFormat, at: TimestampWithTimeZone) -> i64 {
    let at = instant(at);
    format.min_id(at).unwrap_or_else(|error| refuse(format, at, error))
}

fn max_id(format: &IdFormat, at: TimestampWithTimeZone) -> i64 {
    let at = instant(at);
    format.max_id(at).unwrap_or_else(|error| refuse(format, at, error))
}

/// Raises the error for an instant or a part that does not fit into an ID.
fn refuse(format: &IdFormat, at: i128, error: FormatError) -> ! {
    match error {
        FormatError::Part(error) => IdProblem::Part { error, layout: format.layout },
        _ => IdProblem::Instant { at, format: *format },
    }
    .raise()
}
