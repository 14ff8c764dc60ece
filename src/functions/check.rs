//! Searches a table for duplicate IDs, and for IDs that this server could not have issued. Administrators use this
//! search after an incident.

use std::collections::HashSet;

use flake::{Mark, Nanos};
use pgrx::datum::DatumWithOid;
use pgrx::prelude::*;
use pgrx::spi::SpiHeapTupleData;

use crate::config::guc;
use crate::config::identity::Identity;
use crate::faults;
use crate::fleet::grant;
use crate::functions::key_column::{self, KeyColumn};
use crate::generator::mark_storage;
use crate::message::argument::ArgumentProblem;
use crate::message::id::IdProblem;
use crate::message::preload::NotPreloaded;
use crate::pg::local_setting::LocalSetting;
use crate::pg::pinned_cursor::PinnedCursor;
use crate::pg::role::As;
use crate::pg::text_arg::Text;
use crate::pg::{locked, timestamp};
use crate::server::{clock, shmem};

/// The maximum number of servers whose IDs can be distinguished. This is the number of servers in a layout with 16 bits
/// for the worker ID and the datacenter ID.
const MOST_NODES: usize = 1 << 16;

/// The number of array elements to read between two checks for a cancel request. Reading this many elements takes a
/// fraction of a millisecond.
const BETWEEN_LOOKS: usize = 4_096;

/// A group of IDs from the same server, or a group of values that are not IDs.
struct Group {
    /// The bits of an ID that identify its server, or `None` for NULL and for numbers that are not IDs.
    node: Option<i64>,
    ids: i64,
    /// The number of rows whose ID is NULL.
    nulls: i64,
    first: i64,
    last: i64,
}

/// The column whose IDs are checked.
struct Column<'call> {
    identity: &'call Identity,
    oid: pg_sys::Oid,
    table: String,
    name: String,
    /// An expression of type `bigint` that returns the value of the column.
    id: String,
}

/// A row of the result of `snowflake_check`.
type Finding = (&'static str, Option<i32>, Option<i32>, i64, Option<i64>, Option<i64>);

/// Returns the problems with the IDs in a table, one row for each kind of problem and each server.
#[pg_extern(
    sql = "CREATE FUNCTION snowflake_check(relation regclass, key text DEFAULT 'id', workers integer[] DEFAULT NULL) \
           RETURNS TABLE (problem text, datacenter_id integer, worker_id integer, ids bigint, first_id bigint, \
           last_id bigint) STABLE PARALLEL RESTRICTED LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';"
)]
fn snowflake_check(
    relation: Option<pg_sys::Oid>,
    key: Option<Text<'_>>,
    workers: Option<Array<'_, i32>>,
) -> TableIterator<
    'static,
    (
        name!(problem, &'static str),
        name!(datacenter_id, Option<i32>),
        name!(worker_id, Option<i32>),
        name!(ids, i64),
        name!(first_id, Option<i64>),
        name!(last_id, Option<i64>),
    ),
> {
    let Some(identity) = &grant::identity() else { NotPreloaded.raise() };
    // A NULL argument raises an error, because an empty result would mean that there are no problems.
    let oid = relation.unwrap_or_else(|| ArgumentProblem::Null { argument: "relation", names: "table" }.raise());
    let key = key.unwrap_or_else(|| ArgumentProblem::Null { argument: "key", names: "column" }.raise());
    let table = locked::name(oid).unwrap_or_else(|| ArgumentProblem::no_table(oid));
    let KeyColumn { name, id } = key_column::of(oid, &table, key);
    let column = Column { identity, oid, table: table.quoted(), name, id };
    let _reader = As::reader(oid);
    let _visible = LocalSetting::without_row_security();
    TableIterator::new(findings(&column, workers.as_ref()))
}

fn findings(column: &Column, workers: Option<&Array<'_, i32>>) -> Vec<Finding> {
    let identity = column.identity;
    let (_, own) = identity.stamp.node_field();
    let own = identity.worker_set.then_some(own);
    // The rows are read first, then the mark, and then the clock. IDs that this server issues in the meantime are
    // therefore below the mark and near the clock's time.
    let groups = column.nodes();
    let row = |problem, group: &Group| {
        let node = group.node.map(|node| identity.format.layout.split(node).node);
        let layout = &identity.format.layout;
        let datacenter = node.filter(|_| layout.has_datacenter()).map(|node| node.datacenter as i32);
        let worker = node.filter(|_| layout.has_worker()).map(|node| node.worker as i32);
        (problem, datacenter, worker, group.ids, Some(group.first), Some(group.last))
    };

    let mut findings = Vec::new();
    findings.extend(column.duplicates().iter().map(|group| row("duplicate", group)));
    if let Some(group) = groups.iter().find(|group| group.node.is_some() && group.node == own) {
        // Without a mark, it is not known whether any ID has been issued.
        let mark = mark_storage::read().unwrap_or(Mark::NOTHING_ISSUED);
        let from = i64::try_from(mark.value()).ok().filter(|from| group.last >= *from);
        let above = from.into_iter().flat_map(|from| column.from(from)).filter(|group| group.node == own);
        findings.extend(above.map(|group| row("above the mark", &group)));
    }
    // Generator time can be ahead of the wall clock, for example after the clock was set back.
    let (wall, lead) = (clock::wall(), shmem::state().last().map(|_| shmem::state().clock().time(clock::monotonic())));
    let ahead_of = |now: Nanos| {
        let from = identity.format.first_id_from(timestamp::of(now.saturating_add(guc::FARTHEST_AHEAD)));
        from.map_or(Vec::new(), |from| column.from(from))
    };
    let mut future = ahead_of(wall);
    if let Some(now) = lead.filter(|now| *now > wall && future.iter().any(|group| group.node == own)) {
        future.retain(|group| group.node != own);
        future.extend(ahead_of(now).into_iter().filter(|group| group.node == own));
        future.sort_by_key(|group| group.node);
    }
    findings.extend(future.iter().map(|group| row("in the future", group)));
    let worker = |node: i64| identity.format.layout.split(node).node.worker as i32;
    let unnamed = unnamed(groups.iter().filter_map(|group| group.node).map(worker).collect(), workers);
    let unexpected =
        |group: &&Group| group.node.is_some_and(|node| Some(node) != own && unnamed.contains(&worker(node)));
    findings.extend(groups.iter().filter(unexpected).map(|group| row("unexpected worker", group)));
    let others = groups.iter().find(|group| group.node.is_none());
    findings.extend(others.filter(|group| group.ids > 0).map(|group| row("not an ID", group)));
    let nulls = others.map_or(0, |group| group.nulls);
    findings.extend((nulls > 0).then_some(("null", None, None, nulls, None, None)));
    findings
}

/// Returns the worker IDs that were found but are not in the array. The array can have any length, so no memory is
/// allocated for its elements: Rust aborts the process when it runs out of memory. While it reads the elements, this
/// function checks for cancel requests.
fn unnamed(mut found: HashSet<i32>, workers: Option<&Array<'_, i32>>) -> HashSet<i32> {
    let _reading = faults::reading_array(workers);
    for (read, worker) in workers.into_iter().flat_map(|workers| workers.iter()).enumerate() {
        if read % BETWEEN_LOOKS == 0 {
            pgrx::check_for_interrupts!();
        }
        worker.map(|worker| found.remove(&worker));
    }
    found
}

impl Column<'_> {
    /// Returns one group for the IDs of each node, and one group for the values that are not IDs, including NULLs.
    fn nodes(&self) -> Vec<Group> {
        self.groups("", None)
    }

    /// Returns the IDs of each node that are greater than or equal to a given ID.
    fn from(&self, first: i64) -> Vec<Group> {
        let id = &self.id;
        let rows = format!("AND {id} OPERATOR(pg_catalog.>=) $3 AND {id} OPERATOR(pg_catalog.<=) $2");
        self.groups(&rows, Some(first))
    }

    /// Returns the duplicate IDs of each node.
    fn duplicates(&self) -> Vec<Group> {
        let id = &self.id;
        let twice = format!("HAVING pg_catalog.count({id}) OPERATOR(pg_catalog.>) 1");
        self.groups(&format!("AND {id} IS NOT NULL GROUP BY {id} {twice}"), None)
    }

    /// Returns the IDs in the rows that `rows` selects, grouped by node. `rows` continues a WHERE clause, and can use
    /// three parameters: the bits of the node, the largest ID, and `first`.
    fn groups(&self, rows: &str, first: Option<i64>) -> Vec<Group> {
        let Column { oid, table, id, .. } = self;
        let query = format!(
            "SELECT CASE WHEN id OPERATOR(pg_catalog.>=) 0 AND id OPERATOR(pg_catalog.<=) $2
                    THEN id OPERATOR(pg_catalog.&) $1 END,
                pg_catalog.count(id), pg_catalog.min(id), pg_catalog.max(id),
                pg_catalog.count(*) OPERATOR(pg_catalog.-) pg_catalog.count(id)
             FROM (SELECT {id} FROM {table} WHERE $1 IS NOT NULL {rows}) AS ids (id) GROUP BY 1 ORDER BY 1
             LIMIT {}",
            MOST_NODES + 2
        );
        let (mask, _) = self.identity.stamp.node_field();
        let mut arguments: Vec<DatumWithOid> = vec![mask.into(), self.identity.format.layout.last_id().into()];
        arguments.extend(first.map(DatumWithOid::from));
        // The query is read-only, so it also works on a standby.
        let cursor = PinnedCursor::open(*oid, &query, &arguments, ArgumentProblem::name_changed);
        let read = |row: SpiHeapTupleData<'_>| {
            let number = |n| row.get::<i64>(n).map(Option::unwrap_or_default);
            let (ids, first, last, nulls) = (number(2)?, number(3)?, number(4)?, number(5)?);
            Ok(Group { node: row.get(1)?, ids, nulls, first, last })
        };
        let groups = cursor.all(read);
        if groups.iter().filter(|group| group.node.is_some()).count() > MOST_NODES {
            let (column, layout) = (self.name.clone(), self.identity.format.layout);
            IdProblem::ManyNodes { column, most: MOST_NODES, layout }.raise();
        }
        groups
    }
}
