//! Range partitions by time: converts their bounds to IDs, and creates partitions in advance.

use std::collections::HashMap;

use flake::IdFormat;
use pgrx::prelude::*;
use pgrx::spi::SpiError;

use crate::config::identity;
use crate::functions::partition_step::{self, PartitionStep};
use crate::message::argument::ArgumentProblem;
use crate::message::id::IdProblem;
use crate::message::issue::IssueProblem;
use crate::message::partition::{PartitionProblem, StepProblem};
use crate::pg::relation::{self, ANSWERED, Name};
use crate::pg::timestamp::{instant, timestamptz};
use crate::pg::transaction;

/// The maximum number of partitions that one call creates. PostgreSQL can plan queries on thousands of partitions, but
/// not on many more.
const MAX_PARTITIONS: i32 = 1_000;

/// A time range and its IDs, from `from_id` up to, but not including, `until_id`. If the last ID is the largest
/// `bigint`, there is no upper bound.
struct PartitionRange {
    from: i128,
    until: i128,
    from_id: i64,
    until_id: Option<i64>,
}

impl PartitionRange {
    /// Returns the bounds as they appear in a statement. The catalog shows the same text with quotes.
    fn bounds(&self) -> String {
        let until = self.until_id.map_or("MAXVALUE".into(), |id| id.to_string());
        format!("FOR VALUES FROM ({}) TO ({until})", self.from_id)
    }
}

/// Returns the bounds of the partitions that cover a time range. Each partition covers one interval, except that the
/// last one ends at the end of the range.
#[pg_extern(stable, strict, parallel_safe)]
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
    let time = |at| timestamptz(at).unwrap_or_else(|| IdProblem::TimestampRange.raise());
    let format = &identity::get().format;
    let step = PartitionStep::of(&step, format);
    let (from, until) = (instant(start), instant(stop));
    inside(format, from, from);
    if until > from {
        // A range can end at the end of the layout, which is itself outside the layout. Therefore, the last instant of
        // the range is checked instead of its end.
        inside(format, until, until - 1);
    }
    let parts = parts(from, until, step);
    TableIterator::new(parts.map(move |part| (time(part.from), time(part.until), part.from_id, part.until_id)))
}

/// Ensures that a table that is partitioned by ranges of IDs has partitions for `count` consecutive intervals, starting
/// with the interval that contains `start`. Returns the created partitions.
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
        let more = "For more partitions, call the function again with a later start.";
        IssueProblem::Count { count, max: MAX_PARTITIONS as u64, more }.raise();
    }
    let format = &identity::get().format;
    let step = PartitionStep::of(&step, format);
    let from = instant(start);
    inside(format, from, from);
    // The first interval can start before the epoch, and the last interval can end after the end of the layout. The IDs
    // of these intervals are still within the layout.
    let begin = step.begin(from).unwrap_or(from);
    let end = step.after(begin, count.into()).map_or(format.end(), |end| end.min(format.end()));
    inside(format, end, end - 1);
    let wanted: Vec<PartitionRange> = parts(begin, end, step).collect();

    refuse_other_keys(parent);
    let bounds: Vec<String> = wanted.iter().map(PartitionRange::bounds).collect();
    let there = partitions(parent, &bounds);
    if wanted.iter().all(|part| there.contains_key(&part.bounds())) {
        return SetOfIterator::new(Vec::new());
    }
    let table = lock(parent);
    // The partitions are read again, because another session may have created some of them in the meantime.
    let there = partitions(parent, &bounds);
    let missing: Vec<&PartitionRange> = wanted.iter().filter(|part| !there.contains_key(&part.bounds())).collect();
    for part in &missing {
        let suffix =
            step.name(part.from).unwrap_or_else(|| PartitionProblem::Step { problem: StepProblem::NotMinutes }.raise());
        let partition = table
            .sibling(&suffix)
            .unwrap_or_else(|name| ArgumentProblem::NameTooLong { name, partition: true }.raise())
            .quoted();
        let (parent, bounds) = (table.quoted(), part.bounds());
        Spi::run(&format!("CREATE TABLE {partition} PARTITION OF {parent} {bounds}")).expect(ANSWERED);
    }
    // The new partitions are looked up by their bounds, because an event trigger may have renamed them.
    let there = partitions(parent, &bounds);
    SetOfIterator::new(missing.into_iter().filter_map(|part| there.get(&part.bounds()).copied()).collect::<Vec<_>>())
}

/// Raises an error for the bound `at` if the instant `within` is outside the layout or the calendar. `within` is the
/// first or the last instant of the range that `at` bounds.
fn inside(format: &IdFormat, at: i128, within: i128) {
    if format.min_id(within).is_err() {
        IdProblem::Instant { at, format: *format }.raise();
    }
    if within > partition_step::end() {
        PartitionProblem::Calendar { at }.raise();
    }
}

/// Divides a time range into parts. The range must not extend beyond the end of the layout. Each part contains at least
/// one tick.
fn parts(from: i128, until: i128, step: PartitionStep) -> impl Iterator<Item = PartitionRange> {
    let format = &identity::get().format;
    let bound = move |count| step.after(from, count).map_or(until, |at| at.min(until));
    // The instant is rounded up to a tick, as in snowflake_between().
    let id = |at| format.first_id_from(at);
    (0..)
        .map(move |count| (bound(count), bound(count + 1)))
        .take_while(move |(from, _)| *from < until)
        .filter_map(move |(from, until)| Some(PartitionRange { from, until, from_id: id(from)?, until_id: id(until) }))
        .filter(|part| part.until_id.is_none_or(|until_id| part.from_id < until_id))
}

/// Returns the partitions of a table that have one of the given bounds, indexed by their bounds. The bounds have the
/// form that PostgreSQL shows, but without quotes. Only these partitions are read, because a table can have any number
/// of others. Partitions that are being detached are omitted, because they do not accept rows.
fn partitions(parent: pg_sys::Oid, bounds: &[String]) -> HashMap<String, pg_sys::Oid> {
    let query = "SELECT pg_catalog.replace(pg_catalog.pg_get_expr(c.relpartbound, c.oid), '''', ''), c.oid
         FROM pg_catalog.pg_inherits AS i JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) i.inhrelid
         WHERE i.inhparent OPERATOR(pg_catalog.=) $1 AND NOT i.inhdetachpending
           AND pg_catalog.replace(pg_catalog.pg_get_expr(c.relpartbound, c.oid), '''', '') OPERATOR(pg_catalog.=) ANY ($2)";
    // The query is run as a statement that can write. As a result, it sees rows that were committed while this session
    // waited.
    let read = Spi::connect_mut(|client| {
        let rows = client.update(query, None, &[parent.into(), bounds.to_vec().into()])?;
        rows.map(|row| Ok((row.get::<String>(1)?, row.get::<pg_sys::Oid>(2)?))).collect::<Result<Vec<_>, SpiError>>()
    });
    read.expect(ANSWERED).into_iter().filter_map(|(bounds, oid)| Some((bounds?, oid?))).collect()
}

/// Raises an error unless the table is partitioned by ranges of a single column of a suitable type.
fn refuse_other_keys(parent: pg_sys::Oid) {
    let query = "SELECT EXISTS (
             SELECT FROM pg_catalog.pg_partitioned_table AS p JOIN pg_catalog.pg_attribute AS a
                 ON a.attrelid OPERATOR(pg_catalog.=) p.partrelid AND a.attnum OPERATOR(pg_catalog.=) p.partattrs[0]
             WHERE p.partrelid OPERATOR(pg_catalog.=) $1 AND p.partstrat OPERATOR(pg_catalog.=) 'r'
               AND p.partnatts OPERATOR(pg_catalog.=) 1 AND a.atttypid OPERATOR(pg_catalog.=) 'pg_catalog.int8'::pg_catalog.regtype)";
    if Spi::get_one_with_args(query, &[parent.into()]).expect(ANSWERED) != Some(true) {
        let table = relation::of_relation(parent).unwrap_or_else(|| ArgumentProblem::no_table(parent)).quoted();
        PartitionProblem::Key { table }.raise();
    }
}

/// Locks a table in the same way as CREATE TABLE .. PARTITION OF. Returns the name of the table, which cannot change
/// until the transaction ends.
fn lock(parent: pg_sys::Oid) -> Name {
    if transaction::keeps_snapshot() {
        PartitionProblem::Transaction.raise();
    }
    relation::lock(parent, "ACCESS EXCLUSIVE").unwrap_or_else(|| ArgumentProblem::no_table(parent))
}
