//! Range partitions by time: where they begin and end, as IDs, and making the next ones.

use pgrx::prelude::*;

use crate::calendar::Step;
use crate::failure::{Failure, StepProblem};
use crate::timestamp::{instant, timestamptz};
use crate::{identity, name};

/// Most partitions that one call makes: PostgreSQL plans with thousands, and asks more of a catalog than of this function.
const MAX_PARTITIONS: i32 = 1_000;

/// A part of time, and the IDs of it: from `from_id`, before `until_id`, or to the end where no bigint is above the last.
struct Part {
    from: i128,
    until: i128,
    from_id: i64,
    until_id: Option<i64>,
}

impl Part {
    /// The upper bound as a statement and the catalog have it.
    fn upper(&self) -> String {
        self.until_id.map_or("MAXVALUE".into(), |id| id.to_string())
    }
}

/// The bounds of the partitions that cover a range of time, each an interval long, the last as far as the range goes.
#[pg_extern(stable, strict, parallel_safe)]
#[allow(clippy::type_complexity)]
fn snowflake_partition_bounds(
    from: TimestampWithTimeZone,
    until: TimestampWithTimeZone,
    interval: Interval,
) -> TableIterator<
    'static,
    (
        name!(from_time, TimestampWithTimeZone),
        name!(until_time, TimestampWithTimeZone),
        name!(from_id, i64),
        name!(until_id, Option<i64>),
    ),
> {
    let time = |at| timestamptz(at).unwrap_or_else(|failure| failure.raise());
    let scheme = &identity::get().scheme;
    let step = Step::of(&interval, scheme);
    let (from, until) = (instant(from), instant(until));
    // A range may end with the layout.
    for (at, within) in [(from, from), (until, until - 1)] {
        if scheme.min_id(within).is_err() {
            Failure::Instant { at, scheme: *scheme }.raise();
        }
    }
    let parts = parts(from, until, step);
    TableIterator::new(parts.map(move |part| (time(part.from), time(part.until), part.from_id, part.until_id)))
}

/// Sees to it that a table partitioned by ranges of IDs has a partition for the interval that holds "from" and for those
/// that follow, `count` in all. Returns those made.
#[pg_extern(
    sql = "CREATE FUNCTION snowflake_create_partitions(parent regclass, \"interval\" interval, count integer, \
           \"from\" timestamptz DEFAULT pg_catalog.now()) RETURNS SETOF regclass VOLATILE STRICT PARALLEL UNSAFE \
           LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';"
)]
fn snowflake_create_partitions(
    parent: pg_sys::Oid,
    interval: Interval,
    count: i32,
    from: TimestampWithTimeZone,
) -> SetOfIterator<'static, pg_sys::Oid> {
    if !(1..=MAX_PARTITIONS).contains(&count) {
        Failure::Count { count, max: MAX_PARTITIONS as u64, more: "For more partitions, call it again." }.raise();
    }
    let scheme = &identity::get().scheme;
    let step = Step::of(&interval, scheme);
    let from = instant(from);
    if scheme.min_id(from).is_err() {
        Failure::Instant { at: from, scheme: *scheme }.raise();
    }
    // The first interval may have begun before the epoch, and the last may end after the layout: their IDs do not.
    let begin = step.begin(from).unwrap_or(from);
    let end = step.after(begin, count.into()).map_or(scheme.end(), |end| end.min(scheme.end()));
    let wanted: Vec<Part> = parts(begin, end, step).collect();

    let table = name::of_relation(parent).unwrap_or_else(|| Failure::NoTable { table: parent.to_u32() }.raise());
    if wanted.iter().all(|part| exists(parent, part)) {
        return SetOfIterator::new(Vec::new());
    }
    // As CREATE TABLE .. PARTITION OF would, but before looking again: another session may have made some meanwhile.
    Spi::run(&format!("LOCK TABLE ONLY {} IN ACCESS EXCLUSIVE MODE", table.quoted())).unwrap_or_else(name::refused);
    let missing = wanted.iter().filter(|part| !exists(parent, part));
    SetOfIterator::new(missing.map(|part| make(&table, step, part)).collect::<Vec<_>>())
}

/// The parts, each with a tick in it, of a range of time that ends with the layout or before.
fn parts(from: i128, until: i128, step: Step) -> impl Iterator<Item = Part> {
    let scheme = &identity::get().scheme;
    let bound = move |count| step.after(from, count).map_or(until, |at| at.min(until));
    // Rounded up to a tick, as snowflake_between rounds.
    let id = |at| scheme.first_id_from(at);
    (0..)
        .map(move |count| (bound(count), bound(count + 1)))
        .take_while(move |(from, _)| *from < until)
        .filter_map(move |(from, until)| Some(Part { from, until, from_id: id(from)?, until_id: id(until) }))
        .filter(|part| part.until_id.is_none_or(|until_id| part.from_id < until_id))
}

/// True where the table has a partition with exactly these bounds, whatever its name.
fn exists(parent: pg_sys::Oid, part: &Part) -> bool {
    let found: Option<bool> = Spi::get_one_with_args(
        "SELECT EXISTS (
             SELECT FROM pg_catalog.pg_inherits AS i JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) i.inhrelid
             WHERE i.inhparent OPERATOR(pg_catalog.=) $1
               AND pg_catalog.replace(pg_catalog.pg_get_expr(c.relpartbound, c.oid), '''', '') OPERATOR(pg_catalog.=)
                   pg_catalog.format('FOR VALUES FROM (%s) TO (%s)', $2, $3))",
        &[parent.into(), part.from_id.into(), part.upper().into()],
    )
    .unwrap_or_else(name::refused);
    found.unwrap_or(false)
}

/// Makes a partition, named after its table and the time at which its interval begins.
fn make(table: &name::Name, step: Step, part: &Part) -> pg_sys::Oid {
    let suffix = step.name(part.from).unwrap_or_else(|| Failure::Step { problem: StepProblem::NotMinutes }.raise());
    let partition = table.sibling(&suffix);
    let (quoted, parent) = (partition.quoted(), table.quoted());
    let (from, until) = (part.from_id, part.upper());
    Spi::run(&format!("CREATE TABLE {quoted} PARTITION OF {parent} FOR VALUES FROM ({from}) TO ({until})"))
        .unwrap_or_else(name::refused);
    partition.oid()
}
