//! Range partitions by time: where they begin and end, as IDs, and making the next ones.

use std::collections::HashMap;

use flake::IdFormat;
use pgrx::prelude::*;
use pgrx::spi::SpiError;

use crate::config::identity;
use crate::functions::partition_step::{self, Step};
use crate::message::error::{Error, StepProblem};
use crate::pg::relation::{self, ANSWERED, Name};
use crate::pg::timestamp::{instant, timestamptz};
use crate::pg::transaction;

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
    /// The bounds as a statement has them, and the catalog but for its quotes.
    fn bounds(&self) -> String {
        let until = self.until_id.map_or("MAXVALUE".into(), |id| id.to_string());
        format!("FOR VALUES FROM ({}) TO ({until})", self.from_id)
    }
}

/// The bounds of the partitions that cover a range of time, each an interval long, the last as far as the range goes.
#[pg_extern(stable, strict, parallel_safe)]
#[allow(clippy::type_complexity)]
fn snowflake_partition_bounds(
    start: TimestampWithTimeZone,
    stop: TimestampWithTimeZone,
    step: Interval,
) -> TableIterator<
    'static,
    (
        name!(from_time, TimestampWithTimeZone),
        name!(until_time, TimestampWithTimeZone),
        name!(from_id, i64),
        name!(until_id, Option<i64>),
    ),
> {
    let time = |at| timestamptz(at).unwrap_or_else(|| Error::TimestampRange.raise());
    let format = &identity::get().format;
    let step = Step::of(&step, format);
    let (from, until) = (instant(start), instant(stop));
    inside(format, from, from);
    if until > from {
        // A range may end with the layout.
        inside(format, until, until - 1);
    }
    let parts = parts(from, until, step);
    TableIterator::new(parts.map(move |part| (time(part.from), time(part.until), part.from_id, part.until_id)))
}

/// Ensures that a table partitioned by ranges of IDs has a partition for the interval that contains `start` and for those
/// that follow, `count` in all. Returns those made.
#[pg_extern(sql = "CREATE FUNCTION snowflake_create_partitions(parent regclass, step interval, count integer, \
           start timestamptz DEFAULT pg_catalog.now()) RETURNS SETOF regclass VOLATILE STRICT PARALLEL UNSAFE \
           LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';")]
fn snowflake_create_partitions(
    parent: pg_sys::Oid,
    step: Interval,
    count: i32,
    start: TimestampWithTimeZone,
) -> SetOfIterator<'static, pg_sys::Oid> {
    if !(1..=MAX_PARTITIONS).contains(&count) {
        Error::Count { count, max: MAX_PARTITIONS as u64, more: "For more partitions, call it again." }.raise();
    }
    let format = &identity::get().format;
    let step = Step::of(&step, format);
    let from = instant(start);
    inside(format, from, from);
    // The first interval may have begun before the epoch, and the last may end after the layout: their IDs do not.
    let begin = step.begin(from).unwrap_or(from);
    let end = step.after(begin, count.into()).map_or(format.end(), |end| end.min(format.end()));
    inside(format, end, end - 1);
    let wanted: Vec<Part> = parts(begin, end, step).collect();

    refuse_other_keys(parent);
    let there = partitions(parent);
    if wanted.iter().all(|part| there.contains_key(&part.bounds())) {
        return SetOfIterator::new(Vec::new());
    }
    let table = lock(parent);
    // Again: another session may have made some meanwhile.
    let there = partitions(parent);
    let missing: Vec<&Part> = wanted.iter().filter(|part| !there.contains_key(&part.bounds())).collect();
    for part in &missing {
        let suffix = step.name(part.from).unwrap_or_else(|| Error::Step { problem: StepProblem::NotMinutes }.raise());
        let partition = table.sibling(&suffix).unwrap_or_else(|name| Error::NameTooLong { name }.raise()).quoted();
        let (parent, bounds) = (table.quoted(), part.bounds());
        Spi::run(&format!("CREATE TABLE {partition} PARTITION OF {parent} {bounds}")).expect(ANSWERED);
    }
    // By their bounds: an event trigger may have given them other names.
    let there = partitions(parent);
    SetOfIterator::new(missing.into_iter().filter_map(|part| there.get(&part.bounds()).copied()).collect::<Vec<_>>())
}

/// Raises the error for a bound, `at`, that lies outside the layout, or outside the calendar; `within` is the last instant
/// that the bound lets in.
fn inside(format: &IdFormat, at: i128, within: i128) {
    if format.min_id(within).is_err() {
        Error::Instant { at, format: *format }.raise();
    }
    if within > partition_step::end() {
        Error::Calendar { at }.raise();
    }
}

/// The parts, each with a tick in it, of a range of time that ends with the layout or before.
fn parts(from: i128, until: i128, step: Step) -> impl Iterator<Item = Part> {
    let format = &identity::get().format;
    let bound = move |count| step.after(from, count).map_or(until, |at| at.min(until));
    // Rounded up to a tick, as snowflake_between rounds.
    let id = |at| format.first_id_from(at);
    (0..)
        .map(move |count| (bound(count), bound(count + 1)))
        .take_while(move |(from, _)| *from < until)
        .filter_map(move |(from, until)| Some(Part { from, until, from_id: id(from)?, until_id: id(until) }))
        .filter(|part| part.until_id.is_none_or(|until_id| part.from_id < until_id))
}

/// The partitions of a table by their bounds, as PostgreSQL shows them but without the quotes; not those that are being
/// detached, which take no rows any more.
fn partitions(parent: pg_sys::Oid) -> HashMap<String, pg_sys::Oid> {
    let query = "SELECT pg_catalog.replace(pg_catalog.pg_get_expr(c.relpartbound, c.oid), '''', ''), c.oid
         FROM pg_catalog.pg_inherits AS i JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) i.inhrelid
         WHERE i.inhparent OPERATOR(pg_catalog.=) $1 AND NOT i.inhdetachpending";
    // As a statement that may write, so that it sees what was committed while this one waited.
    let read = Spi::connect_mut(|client| {
        let rows = client.update(query, None, &[parent.into()])?;
        rows.map(|row| Ok((row.get::<String>(1)?, row.get::<pg_sys::Oid>(2)?))).collect::<Result<Vec<_>, SpiError>>()
    });
    read.expect(ANSWERED).into_iter().filter_map(|(bounds, oid)| Some((bounds?, oid?))).collect()
}

/// Raises the error for a table that is not partitioned by ranges of one column that IDs fit.
fn refuse_other_keys(parent: pg_sys::Oid) {
    let fits = Spi::get_one_with_args::<bool>(
        "SELECT EXISTS (
             SELECT FROM pg_catalog.pg_partitioned_table AS p JOIN pg_catalog.pg_attribute AS a
                 ON a.attrelid OPERATOR(pg_catalog.=) p.partrelid AND a.attnum OPERATOR(pg_catalog.=) p.partattrs[0]
             WHERE p.partrelid OPERATOR(pg_catalog.=) $1 AND p.partstrat OPERATOR(pg_catalog.=) 'r'
               AND p.partnatts OPERATOR(pg_catalog.=) 1 AND a.atttypid OPERATOR(pg_catalog.=) 'pg_catalog.int8'::pg_catalog.regtype)",
        &[parent.into()],
    );
    if fits.expect(ANSWERED) != Some(true) {
        match relation::of_relation(parent) {
            Some(table) => Error::PartitionKey { table: table.quoted() }.raise(),
            None => Error::NoTable { table: parent.to_u32() }.raise(),
        }
    }
}

/// Locks a table as CREATE TABLE .. PARTITION OF would; it keeps the name that this returns until the transaction ends.
fn lock(parent: pg_sys::Oid) -> Name {
    if transaction::keeps_snapshot() {
        Error::PartitionTransaction.raise();
    }
    loop {
        let table = relation::of_relation(parent).unwrap_or_else(|| Error::NoTable { table: parent.to_u32() }.raise());
        Spi::run(&format!("LOCK TABLE ONLY {} IN ACCESS EXCLUSIVE MODE", table.quoted())).expect(ANSWERED);
        // A lock is taken by name, which may have become another table's while this waited.
        if table.oid() == Some(parent) {
            return table;
        }
    }
}
