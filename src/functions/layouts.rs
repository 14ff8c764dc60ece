//! The list of named layouts.

use flake::{Part, Preset};
use pgrx::prelude::*;

use crate::message::id::IdProblem;
use crate::pg::timestamp::{interval, timestamptz};

/// Returns all presets, for the view `snowflake_layouts`.
#[pg_extern(immutable, parallel_safe)]
fn snowflake_layouts() -> TableIterator<
    'static,
    (
        name!(name, &'static str),
        name!(bits, String),
        name!(tick, Interval),
        name!(epoch, TimestampWithTimeZone),
        name!(last_instant, TimestampWithTimeZone),
        name!(ids_per_second, i64),
        name!(datacenter_id, Option<&'static str>),
        name!(worker_id, Option<&'static str>),
        name!(sequence, &'static str),
        name!(source, &'static str),
    ),
> {
    TableIterator::new(Preset::ALL.into_iter().map(|Preset { name, format, datacenter, worker, sequence, source }| {
        let time = |tick| timestamptz(format.instant(tick)).unwrap_or_else(|| IdProblem::TimestampRange.raise());
        let layout = format.layout;
        let micros = layout.tick().micros();
        (
            name,
            layout.to_string(),
            interval(micros.into()),
            time(0),
            time(layout.max(Part::Timestamp)),
            (layout.sequence_capacity() * 1_000_000 / micros) as i64,
            datacenter,
            worker,
            sequence,
            source,
        )
    }))
}
