//! Looking through a table for IDs that this server cannot have issued, or that are there more than once: what a DBA runs
//! after an incident.

use flake::{MAX_WINDOW, Mark, Nanos};
use pgrx::datum::DatumWithOid;
use pgrx::prelude::*;

use crate::argument::Text;
use crate::failure::Failure;
use crate::identity::{self, Identity};
use crate::{clock, guc, mark, name, row_security, shmem, timestamp};

/// How far the time of an ID may be ahead of the clock, in nanoseconds: after a crash IDs begin up to a window ahead, and run
/// ahead of that by `snowflake_pg.max_ahead`.
const AHEAD: Nanos = MAX_WINDOW + guc::MAX_MAX_AHEAD_MS as Nanos * 1_000_000;

/// How many servers' IDs are told apart: all of a layout with 16 bits for their numbers.
const MOST_NODES: usize = 1 << 16;

/// IDs that belong together.
struct Group {
    /// An ID's bits that say who issued it; `None` for numbers that are no IDs.
    node: Option<i64>,
    ids: i64,
    first: i64,
    last: i64,
}

/// The IDs of a column.
struct Column<'call> {
    identity: &'call Identity,
    table: String,
    /// The column's name, and an expression of type `bigint` with its value.
    name: String,
    id: String,
}

/// A row of `snowflake_check`.
type Finding = (&'static str, Option<i32>, Option<i32>, i64, i64, i64);

/// What is wrong with the IDs of a table: a row for each kind of problem and each server it is about.
#[pg_extern(
    sql = "CREATE FUNCTION snowflake_check(\"table\" regclass, \"column\" text DEFAULT 'id', workers integer[] DEFAULT NULL) \
           RETURNS TABLE (problem text, datacenter_id integer, worker_id integer, ids bigint, first_id bigint, \
           last_id bigint) STABLE PARALLEL RESTRICTED LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';"
)]
#[allow(clippy::type_complexity)]
fn snowflake_check(
    table: Option<pg_sys::Oid>,
    column: Option<Text<'_>>,
    workers: Option<Array<'_, i32>>,
) -> TableIterator<
    'static,
    (
        name!(problem, &'static str),
        name!(datacenter_id, Option<i32>),
        name!(worker_id, Option<i32>),
        name!(ids, i64),
        name!(first_id, i64),
        name!(last_id, i64),
    ),
> {
    let identity = identity::get();
    // Where "no rows" means that all is well, an answer to nothing would be a lie.
    let table = table.unwrap_or_else(|| Failure::NullArgument { argument: "table" }.raise());
    let column = column.unwrap_or_else(|| Failure::NullArgument { argument: "column" }.raise());
    let name = name::identifier(&column.name());
    match name::column_type(table, column.0) {
        Some(pg_sys::INT8OID | pg_sys::INT4OID | pg_sys::INT2OID) => {}
        // A cast would make numbers of what is none.
        Some(_) => Failure::NotIntegers { column: name }.raise(),
        // PostgreSQL has an error of its own.
        None => {}
    }
    let table = name::of_relation(table).unwrap_or_else(|| Failure::NoTable { table: table.to_u32() }.raise());
    let workers: Vec<i32> = workers.iter().flat_map(|workers| workers.iter()).flatten().collect();
    let id = format!("({name})::pg_catalog.int8");
    let column = Column { identity, table: table.quoted(), name, id };
    let _visible = row_security::Off::new();
    TableIterator::new(findings(&column, &workers))
}

fn findings(column: &Column, workers: &[i32]) -> Vec<Finding> {
    let identity = column.identity;
    let (_, own) = identity.stamp.node_field();
    let own = identity.worker_set.then_some(own);
    // The rows first, then the mark, then the clock: what this server issues meanwhile is below the one and near the other.
    let groups = column.nodes();
    let row = |problem, group: &Group| {
        let node = group.node.map(|node| identity.scheme.layout.split(node).node);
        let layout = &identity.scheme.layout;
        let datacenter = node.filter(|_| layout.has_datacenter()).map(|node| node.datacenter as i32);
        let worker = node.filter(|_| layout.has_worker()).map(|node| node.worker as i32);
        (problem, datacenter, worker, group.ids, group.first, group.last)
    };

    let mut findings = Vec::new();
    findings.extend(column.duplicates().iter().map(|group| row("duplicate", group)));
    if let Some(group) = groups.iter().find(|group| group.node.is_some() && group.node == own) {
        // Without a mark nothing is known to be issued.
        let mark = mark::read().unwrap_or(Mark::NOTHING_ISSUED);
        let from = i64::try_from(mark.value()).ok().filter(|from| group.last >= *from);
        let above = from.into_iter().flat_map(|from| column.from(from)).filter(|group| group.node == own);
        findings.extend(above.map(|group| row("above the mark", &group)));
    }
    // This server's own clock may lead the wall clock, as after a step back.
    let (wall, lead) = (clock::wall(), shmem::state().last().map(|_| shmem::state().clock().time(clock::monotonic())));
    let ahead_of = |now: Nanos| {
        let from = identity.scheme.first_id_from(timestamp::of(now.saturating_add(AHEAD)));
        from.map_or(Vec::new(), |from| column.from(from))
    };
    let mut future = ahead_of(wall);
    if let Some(now) = lead.filter(|now| *now > wall && future.iter().any(|group| group.node == own)) {
        future.retain(|group| group.node != own);
        future.extend(ahead_of(now).into_iter().filter(|group| group.node == own));
        future.sort_by_key(|group| group.node);
    }
    findings.extend(future.iter().map(|group| row("in the future", group)));
    let unexpected = |group: &&Group| {
        let worker = |node: i64| identity.scheme.layout.split(node).node.worker;
        group.node.is_some_and(|node| Some(node) != own && !workers.contains(&(worker(node) as i32)))
    };
    findings.extend(groups.iter().filter(unexpected).map(|group| row("unexpected worker", group)));
    findings.extend(groups.iter().filter(|group| group.node.is_none()).map(|group| row("not an ID", group)));
    findings
}

impl Column<'_> {
    /// The IDs of each node, and the numbers that are no IDs.
    fn nodes(&self) -> Vec<Group> {
        self.groups(&format!("WHERE {} IS NOT NULL", self.id), None)
    }

    /// The IDs of each node at or above one.
    fn from(&self, first: i64) -> Vec<Group> {
        let id = &self.id;
        let rows = format!("WHERE {id} OPERATOR(pg_catalog.>=) $3 AND {id} OPERATOR(pg_catalog.<=) $2");
        self.groups(&rows, Some(first))
    }

    /// The IDs of each node that are there more than once.
    fn duplicates(&self) -> Vec<Group> {
        let id = &self.id;
        let twice = format!("HAVING pg_catalog.count({id}) OPERATOR(pg_catalog.>) 1");
        self.groups(&format!("WHERE {id} IS NOT NULL GROUP BY {id} {twice}"), None)
    }

    /// The IDs of some rows by their node. Parameters of `rows`: the bits of the node, the largest ID, and `first`.
    fn groups(&self, rows: &str, first: Option<i64>) -> Vec<Group> {
        let Column { table, id, .. } = self;
        let query = format!(
            "SELECT CASE WHEN id OPERATOR(pg_catalog.>=) 0 AND id OPERATOR(pg_catalog.<=) $2
                    THEN id OPERATOR(pg_catalog.&) $1 END,
                pg_catalog.count(id), pg_catalog.min(id), pg_catalog.max(id)
             FROM (SELECT {id} FROM {table} {rows}) AS ids (id) GROUP BY 1 ORDER BY 1"
        );
        let (mask, _) = self.identity.stamp.node_field();
        let mut arguments: Vec<DatumWithOid> = vec![mask.into(), self.identity.scheme.layout.last_id().into()];
        arguments.extend(first.map(DatumWithOid::from));
        // Read only, so on a standby, too.
        let groups = Spi::connect(|client| {
            let rows = client.select(&query, Some(MOST_NODES as i64 + 1), &arguments)?;
            rows.map(|row| {
                let number = |n| row.get::<i64>(n).map(Option::unwrap_or_default);
                Ok(Group { node: row.get(1)?, ids: number(2)?, first: number(3)?, last: number(4)? })
            })
            .collect::<Result<Vec<_>, pgrx::spi::SpiError>>()
        });
        let groups = groups.unwrap_or_else(name::refused);
        if groups.len() > MOST_NODES {
            let (column, layout) = (self.name.clone(), self.identity.scheme.layout);
            Failure::ManyNodes { column, most: MOST_NODES, layout }.raise();
        }
        groups
    }
}
