//! Guards. A guard is a trigger on a table that refuses replicated rows whose IDs only this server can have issued.

use pgrx::prelude::*;
use pgrx::spi::SpiError;

use crate::config::identity;
use crate::faults::{self, Fault};
use crate::functions::extension;
use crate::generator::{current, own_range};
use crate::message::argument::ArgumentProblem;
use crate::message::guard::GuardProblem;
use crate::pg::fired::{Timing, TriggerEvent, Version};
use crate::pg::function::Called;
use crate::pg::relation::{self, ANSWERED};
use crate::pg::text_arg::Text;
use crate::pg::timestamp;
use crate::pg::trigger::{self, TriggerResult};
use crate::server::{clock, shmem};

/// An existing guard on a table.
struct TableGuard {
    /// The name of the column, in the database's encoding.
    column: Vec<u8>,
    /// The first ID that the guard refuses.
    first: i64,
}

/// Ensures that a table has a guard and that the guard is enabled. The guard refuses replicated rows whose IDs have
/// this server's worker ID and are not below the IDs that this server issues from now on.
#[pg_extern(sql = "CREATE FUNCTION snowflake_guard(relation regclass, key text DEFAULT NULL) RETURNS void \
           VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';")]
fn snowflake_guard(relation: Option<pg_sys::Oid>, key: Option<Text<'_>>) {
    // Raises an error if the library is not preloaded.
    identity::get();
    let oid = relation.unwrap_or_else(|| ArgumentProblem::Null { argument: "relation", names: "table" }.raise());
    let name = relation::of_relation(oid).unwrap_or_else(|| ArgumentProblem::no_table(oid));
    relation::check_owner(oid);
    let raise = |problem: GuardProblem| -> ! { problem.report(&name.quoted()).raise() };
    if let Some(kind) = kind(oid) {
        raise(GuardProblem::Kind { kind });
    }
    let name = relation::lock(oid, "SHARE ROW EXCLUSIVE").unwrap_or_else(|| ArgumentProblem::no_table(oid));

    let there = existing(oid);
    let column = match (key, &there) {
        (Some(key), _) => {
            // Raises an error if the text is longer than a name can be.
            key.name();
            key.0.to_vec()
        }
        (None, Some(guard)) if relation::column_type(oid, &guard.column).is_some() => guard.column.clone(),
        (None, _) => id_column(oid).unwrap_or_else(|| raise(GuardProblem::NoKey)),
    };
    let quoted = relation::identifier(&relation::utf8(&column));
    match relation::column_type(oid, &column) {
        Some(pg_sys::INT8OID) => {}
        Some(_) => raise(GuardProblem::NotBigint { column: quoted }),
        None => raise(GuardProblem::NoColumn { column: quoted, renamed: false }),
    }
    let table = name.quoted();
    if there.as_ref().is_none_or(|guard| guard.column != column) {
        let first = there.map_or_else(own_range::next, |guard| guard.first);
        let function = format!("{}.snowflake_guard_row({quoted}, '{first}')", extension::schema());
        let create = if has_other_trigger(oid) { "CREATE" } else { "CREATE OR REPLACE" };
        Spi::run(&format!(
            "{create} TRIGGER snowflake_guard BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION {function}"
        ))
        .expect(ANSWERED);
    }
    // A replica trigger does not fire for rows that this server inserts, so the guard does not slow these inserts down.
    Spi::run(&format!("ALTER TABLE {table} ENABLE REPLICA TRIGGER snowflake_guard")).expect(ANSWERED);
}

/// Refuses the row to be inserted if only this server can have issued its ID, unless it is the last ID that was issued
/// to this session.
#[pg_extern(sql = "CREATE FUNCTION snowflake_guard_row() RETURNS trigger VOLATILE PARALLEL UNSAFE LANGUAGE c \
                   AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';")]
fn snowflake_guard_row(call: Called) -> TriggerResult {
    let not_a_guard = || -> ! { GuardProblem::NotAGuard.report("").raise() };
    let Some(fired) = call.fired() else { not_a_guard() };
    if (fired.event(), fired.timing()) != (TriggerEvent::Insert, Timing::BeforeRow) {
        not_a_guard();
    }
    if !trigger::replicates() {
        return fired.unchanged();
    }
    let raise = |problem: GuardProblem| -> ! {
        let table = relation::of_relation(fired.table()).map(|table| table.quoted());
        problem.report(&table.unwrap_or_default()).raise()
    };
    let arguments = fired.arguments();
    let first = arguments.get(1).and_then(|text| text.to_str().ok()?.parse::<i64>().ok());
    let column = arguments.first().copied().filter(|name| relation::fits_name(name));
    let (Some(column), Some(first)) = (column, first) else { not_a_guard() };
    let Ok(id) = fired.bigint(Version::New, column) else {
        let column = relation::identifier(&relation::utf8(column.to_bytes()));
        raise(GuardProblem::NoColumn { column, renamed: true })
    };
    let first = if faults::on(Fault::GuardFromZero) { 0 } else { first };
    let Some(id) = id.filter(|id| *id >= first) else { return fired.unchanged() };
    // While a replicated row is applied, a trigger on this server can insert a row with a new ID.
    let new = current::get() == Some(id) && !faults::on(Fault::GuardMistakesOwn);
    match own_range::own(first) {
        Some(own) if own.contains(id) && !new => {
            shmem::refusals().add(id, clock::wall());
            let (at, since) = (own.time(id), own.time(own.first));
            raise(GuardProblem::Row { id, at, name: own.name(), first: own.first, since })
        }
        _ => fired.unchanged(),
    }
}

/// Returns what the guards have refused, for the view `snowflake_status`. This is a separate function because the
/// result columns of an existing C function cannot be changed.
#[pg_extern(volatile, parallel_safe)]
fn snowflake_guard_status() -> TableIterator<
    'static,
    (
        name!(guard_refusals, Option<i64>),
        name!(last_guard_refusal_id, Option<i64>),
        name!(last_guard_refusal_at, Option<TimestampWithTimeZone>),
    ),
> {
    if identity::find().is_none() {
        return TableIterator::once((None, None, None));
    }
    let refusals = shmem::refusals();
    let last = refusals.last();
    TableIterator::once((
        Some(refusals.count() as i64),
        last.map(|(id, _)| id),
        last.and_then(|(_, at)| timestamp::timestamptz(timestamp::of(at))),
    ))
}

/// Returns the kind of a relation, in the plural, if relations of this kind cannot have a guard.
fn kind(table: pg_sys::Oid) -> Option<&'static str> {
    let query = "SELECT CASE WHEN relpersistence OPERATOR(pg_catalog.=) 't' THEN 't' ELSE relkind END::pg_catalog.text
         FROM pg_catalog.pg_class WHERE oid OPERATOR(pg_catalog.=) $1";
    let kind: Option<String> = Spi::get_one_with_args(query, &[table.into()]).expect(ANSWERED);
    match kind.as_deref() {
        Some("r" | "p") | None => None,
        Some("t") => Some("temporary tables"),
        Some("v") => Some("views"),
        Some("m") => Some("materialized views"),
        Some("f") => Some("foreign tables"),
        Some("S") => Some("sequences"),
        Some(_) => Some("this kind of relation"),
    }
}

/// Returns the guard on a table. A trigger with the same name is not a guard if it calls a different function or has
/// different arguments.
fn existing(table: pg_sys::Oid) -> Option<TableGuard> {
    let query = "SELECT (SELECT t.tgargs
                 FROM pg_catalog.pg_trigger AS t JOIN pg_catalog.pg_proc AS p ON p.oid OPERATOR(pg_catalog.=) t.tgfoid
                 WHERE t.tgrelid OPERATOR(pg_catalog.=) $1 AND t.tgname OPERATOR(pg_catalog.=) 'snowflake_guard'
                   AND p.proname OPERATOR(pg_catalog.=) 'snowflake_guard_row'
                   AND pg_catalog.octet_length(t.tgargs) OPERATOR(pg_catalog.<) 1000)";
    let arguments: Vec<u8> = Spi::get_one_with_args(query, &[table.into()]).expect(ANSWERED)?;
    let mut parts = arguments.split(|byte| *byte == 0);
    let column = parts.next()?.to_vec();
    let first = str::from_utf8(parts.next()?).ok()?.parse().ok()?;
    Some(TableGuard { column, first })
}

/// Returns true if a table or one of its partitions has a trigger that has the name of a guard but is not one. In that
/// case, CREATE TRIGGER must be used, which raises an error, because CREATE OR REPLACE TRIGGER would replace that
/// trigger.
fn has_other_trigger(table: pg_sys::Oid) -> bool {
    let query = "SELECT EXISTS (
             SELECT FROM pg_catalog.pg_trigger AS t JOIN pg_catalog.pg_proc AS p ON p.oid OPERATOR(pg_catalog.=) t.tgfoid
             WHERE (t.tgrelid OPERATOR(pg_catalog.=) $1
                     OR t.tgrelid OPERATOR(pg_catalog.=) ANY (SELECT relid FROM pg_catalog.pg_partition_tree($1)))
               AND t.tgname OPERATOR(pg_catalog.=) 'snowflake_guard' AND p.proname OPERATOR(pg_catalog.<>) 'snowflake_guard_row')";
    Spi::get_one_with_args(query, &[table.into()]).expect(ANSWERED) == Some(true)
}

/// Returns the name of the ID column, which is the only column with the default `snowflake_nextval()`, or else the
/// primary key.
fn id_column(table: pg_sys::Oid) -> Option<Vec<u8>> {
    let with_default = "SELECT DISTINCT d.adnum
         FROM pg_catalog.pg_attrdef AS d
             JOIN pg_catalog.pg_depend AS n ON n.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_attrdef'::pg_catalog.regclass
                 AND n.objid OPERATOR(pg_catalog.=) d.oid
             JOIN pg_catalog.pg_proc AS p ON n.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass
                 AND n.refobjid OPERATOR(pg_catalog.=) p.oid
             JOIN pg_catalog.pg_extension AS e ON e.extnamespace OPERATOR(pg_catalog.=) p.pronamespace
         WHERE d.adrelid OPERATOR(pg_catalog.=) $1 AND e.extname OPERATOR(pg_catalog.=) 'snowflake_pg'
           AND p.proname OPERATOR(pg_catalog.=) 'snowflake_nextval'";
    let primary_key = "SELECT k.conkey[1]
         FROM pg_catalog.pg_constraint AS k
         WHERE k.conrelid OPERATOR(pg_catalog.=) $1 AND k.contype OPERATOR(pg_catalog.=) 'p'
           AND pg_catalog.cardinality(k.conkey) OPERATOR(pg_catalog.=) 1";
    let columns = |query| {
        let read = Spi::connect(|client| {
            let rows = client.select(query, None, &[table.into()])?;
            rows.map(|row| row.get::<i16>(1)).collect::<Result<Vec<_>, SpiError>>()
        });
        read.expect(ANSWERED).into_iter().flatten().collect::<Vec<i16>>()
    };
    let (defaults, key) = (columns(with_default), columns(primary_key).first().copied());
    let number = match defaults[..] {
        [only] => Some(only),
        _ => key.filter(|key| defaults.is_empty() || defaults.contains(key)),
    };
    let name = relation::column_name(table, number?)?;
    (!defaults.is_empty() || relation::column_type(table, &name) == Some(pg_sys::INT8OID)).then_some(name)
}
