//! The triggers that number the rows of a table when the transaction commits.

use std::ffi::CStr;

use pgrx::prelude::*;
use pgrx::spi::SpiError;

use crate::faults::{self, Fault};
use crate::functions::extension;
use crate::functions::serial_keep::Writing;
use crate::functions::series_definition::{COLUMNS, Series, TRIGGER_FUNCTION};
use crate::functions::series_next::PeriodTime;
use crate::message::argument::ArgumentProblem;
use crate::message::serial_at_commit::{self, NumberProblem};
use crate::pg::fired::{ColumnTime, Timing, TriggerEvent, Version};
use crate::pg::function::Called;
use crate::pg::local_setting::LocalSetting;
use crate::pg::locked::{self, Lock};
use crate::pg::relation::{self, ANSWERED};
use crate::pg::role::{self, As};
use crate::pg::text_arg::{Text, shown};
use crate::pg::text_value::TextValue;
use crate::pg::trigger::{NoSuchColumn, TriggerResult};
use crate::pg::triggers::Fires;
use crate::pg::{bound_plan, partition, plain, plans, timestamp, versions};

/// The triggers that exist on every series.
const TRIGGERS_OF_SERIES: [(&[u8], Fires); 2] =
    [(b"snowflake_series", Fires::AfterRow), (b"snowflake_series_truncate", Fires::BeforeTruncate)];

/// Makes a table number its rows at the end of the transaction. A row gets the next serial of the series if column
/// `key` is NULL and, if `date_key` is specified, column `date_key` is not NULL. Column `date_key` then determines the
/// period.
#[pg_extern(sql = "CREATE FUNCTION snowflake_number_at_commit(relation regclass, key text, series regclass, \
           date_key text DEFAULT NULL) RETURNS void VOLATILE PARALLEL UNSAFE LANGUAGE c \
           AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';")]
fn snowflake_number_at_commit(
    relation: Option<pg_sys::Oid>,
    key: Option<Text<'_>>,
    series: Option<pg_sys::Oid>,
    date_key: Option<Text<'_>>,
) {
    let null = |argument, names| -> ! { ArgumentProblem::Null { argument, names }.raise() };
    let oid = relation.unwrap_or_else(|| null("relation", "table"));
    let key = key.unwrap_or_else(|| null("key", "column"));
    let series = series.unwrap_or_else(|| null("series", "series"));
    Series::open(series, Lock::Reading);
    let gone = |table: pg_sys::Oid| -> ! { ArgumentProblem::NoTable { table: table.to_u32() }.raise() };
    let name = relation::of_relation(oid).unwrap_or_else(|| gone(oid));
    relation::check_owner(oid);
    if !relation::is_table(oid) {
        NumberProblem::NotATable { relation: name.quoted() }.raise();
    }
    check_owner_of(oid, series);
    let table = relation::lock(oid, "SHARE ROW EXCLUSIVE").unwrap_or_else(|| gone(oid)).quoted();
    let by_name = faults::on(Fault::SeriesByName);
    Series::open(series, if by_name { Lock::Reading } else { Lock::Naming });
    let from = relation::of_relation(series).unwrap_or_else(|| gone(series)).quoted();
    let column = |name: Text<'_>| {
        let quoted = relation::identifier(&name.name());
        match relation::column_type(oid, name.0) {
            Some(kind) => (quoted, kind),
            None => NumberProblem::NoColumn { table: table.clone(), column: quoted, by_trigger: false }.raise(),
        }
    };
    let column_name = text_column(column(key));
    let date = date_key.map(|name| (date_column(column(name)).0, name));

    let (trigger, keep) = names(oid, key.0, series, &table, &column_name);
    let mut condition = format!("NEW.{column_name} IS NULL");
    if let Some((name, _)) = &date {
        condition.push_str(&format!(" AND NEW.{name} IS NOT NULL"));
    }
    let schema = extension::schema();
    // Because of the FROM clause, PostgreSQL requires the TRIGGER privilege on the series, and the trigger still refers
    // to the series after the series is renamed.
    let number = format!(
        "CREATE CONSTRAINT TRIGGER {trigger} AFTER INSERT OR UPDATE ON {table} FROM {from} DEFERRABLE INITIALLY DEFERRED
         FOR EACH ROW WHEN ({condition}) EXECUTE FUNCTION {schema}.snowflake_number_row("
    );
    // This is a constraint trigger, because a role with the TRIGGER privilege could replace any other kind of trigger.
    // It also fires for DELETE, because a row that moves to a different partition is deleted from its previous one.
    let events = if relation::is_partitioned(oid) { "INSERT OR UPDATE OR DELETE" } else { "INSERT OR UPDATE" };
    let kept = format!(
        "CREATE CONSTRAINT TRIGGER {keep} AFTER {events} ON {table} NOT DEFERRABLE FOR EACH ROW
         EXECUTE FUNCTION {schema}.snowflake_number_keep("
    );
    let literal = relation::literal(key.0);
    let arguments = std::iter::once(literal.clone()).chain(date.map(|(_, name)| relation::literal(name.0)));
    let arguments = arguments.collect::<Vec<_>>().join(&b", "[..]);
    relation::run([number.as_bytes(), &arguments, b")"].concat());
    // The lock on the series protects its name, but not the name of its schema.
    let is_made = |found: &SeriesTrigger| {
        found.table == oid && found.key.as_deref() == Some(key.0) && found.series == Some(series)
    };
    if !by_name && !triggers(oid).iter().any(is_made) {
        ArgumentProblem::NameChanged { table: from }.raise();
    }
    relation::run([kept.as_bytes(), &literal, b")"].concat());
}

/// Numbers the row for which the trigger was queued, unless a later statement of the transaction has changed or deleted
/// this version of the row. If the row was changed, the trigger was queued again for the new version.
///
/// The row is written as the current user, like any other row, because the table's triggers and constraints run with
/// the privileges of the role that writes the row. The counter is written as the owner of the series, so that the user
/// needs no privileges on the series.
#[pg_extern(sql = "CREATE FUNCTION snowflake_number_row() RETURNS trigger VOLATILE PARALLEL UNSAFE LANGUAGE c \
                   AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';")]
fn snowflake_number_row(call: Called) -> TriggerResult {
    let Some(fired) = call.fired() else { NumberProblem::NotANumberTrigger.raise() };
    let arguments = fired.arguments();
    let written = matches!(fired.event(), TriggerEvent::Insert | TriggerEvent::Update);
    let (Timing::AfterRow, true, [key, date @ ..], Some(series)) =
        (fired.timing(), written, &arguments[..], fired.referenced())
    else {
        NumberProblem::NotANumberTrigger.raise()
    };
    if !relation::fits_name(key) || !date.iter().all(|name| relation::fits_name(name)) {
        NumberProblem::NotANumberTrigger.raise();
    }
    let oid = fired.table();
    let table =
        relation::of_relation(oid).unwrap_or_else(|| ArgumentProblem::NoTable { table: oid.to_u32() }.raise()).quoted();
    let column = |name: &CStr| {
        let quoted = relation::identifier(&relation::utf8(name.to_bytes()));
        match relation::column_type(oid, name.to_bytes()) {
            Some(kind) => (quoted, kind),
            None => NumberProblem::NoColumn { table: table.clone(), column: quoted, by_trigger: true }.raise(),
        }
    };
    let column_name = text_column(column(key));
    let at = match date.first() {
        Some(name) => match fired.moment(name) {
            Ok(Some(ColumnTime::Day(day))) => Some(PeriodTime::day(day)),
            Ok(Some(ColumnTime::Instant(instant))) => Some(PeriodTime::instant(instant)),
            Ok(None) => None,
            Err(NoSuchColumn) => {
                date_column(column(name));
                None
            }
        },
        None => Some(PeriodTime::instant(timestamp::transaction_start())),
    };
    // Issue the serial only if the row still exists. Otherwise, its number would be missing from the table.
    let is_numbered = fired.text(Version::New, key).is_ok_and(|number| number.is_some());
    let Some(at) = at.filter(|_| !is_numbered && fired.is_current()) else { return fired.unchanged() };
    // A role usually has privileges on a partitioned table, but not on its partitions.
    let through =
        if partition::may_update(oid, key) { None } else { Some(partition::through(oid, key).unwrap_or(oid)) };
    if let Some(above) = through.filter(|above| !partition::may_update(*above, key)) {
        let table = relation::of_relation(above).map_or(table, |name| name.quoted());
        NumberProblem::MayNotWrite { table, column: column_name, role: role::current() }.raise();
    }
    check_owner_of(fired.clone().and_then(defined_on).unwrap_or(oid), series);
    let serial = draw(series, fired.schema(), at).0;

    let _own = Writing::begin(oid, fired.place(), &serial);
    // The name can have changed while the session waited for the counter.
    let (target, only) = through.map_or((oid, "ONLY"), |above| (above, ""));
    let current = relation::of_relation(target).filter(|_| !faults::on(Fault::NameTrusted));
    let name = current.map_or_else(|| table.clone(), |name| name.quoted());
    let store = format!(
        "UPDATE {only} {name} SET {column_name} = $2
         WHERE ctid OPERATOR(pg_catalog.=) $1 AND tableoid OPERATOR(pg_catalog.=) $3
         RETURNING {column_name}::pg_catalog.text OPERATOR(pg_catalog.=) $2"
    );
    let arguments = [fired.place().into(), TextValue(serial.clone()).into(), oid.into()];
    let stored = bound_plan::first(target, store, &arguments, ArgumentProblem::name_changed, |row| row.get(1));
    if stored.flatten() != Some(true) {
        NumberProblem::NotStored { table, serial: shown(&serial) }.raise();
    }
    fired.unchanged()
}

/// Raises an error unless the owner of a table may use the series.
fn check_owner_of(table: pg_sys::Oid, series: pg_sys::Oid) {
    let lacks = |owner: &pg_sys::Oid| !locked::may_trigger(series, *owner) && !faults::on(Fault::TableOwnerTrusted);
    let Some(owner) = relation::owner(table).filter(lacks) else { return };
    let name = |oid| relation::of_relation(oid).map(|name| name.quoted()).unwrap_or_default();
    let (table, series) = (name(table), name(series));
    NumberProblem::TableOwner { table, owner: role::name(owner).unwrap_or_default(), series }.raise();
}

/// Returns the partitioned table on which a partition's trigger was created.
fn defined_on(trigger: pg_sys::Oid) -> Option<pg_sys::Oid> {
    let query = "WITH RECURSIVE above AS (
                     SELECT t.tgrelid, t.tgparentid FROM pg_catalog.pg_trigger AS t WHERE t.oid OPERATOR(pg_catalog.=) $1
                     UNION ALL
                     SELECT t.tgrelid, t.tgparentid FROM above
                         JOIN pg_catalog.pg_trigger AS t ON t.oid OPERATOR(pg_catalog.=) above.tgparentid)
                 SELECT tgrelid FROM above WHERE tgparentid OPERATOR(pg_catalog.=) 0::pg_catalog.oid";
    plans::first(query, &[trigger.into()], |row| row.get::<pg_sys::Oid>(1)).flatten()
}

/// Draws the next number of a series as the owner of the series. Raises an error if writing the counter could run other
/// code, because a different role might have written that code.
fn draw(oid: pg_sys::Oid, schema: pg_sys::Oid, at: PeriodTime) -> TextValue {
    let by_owner = versions::owns(oid);
    let owner = locked::owner(oid).unwrap_or_else(|| ArgumentProblem::NoTable { table: oid.to_u32() }.raise());
    let _owner = As::new(owner);
    let _path = LocalSetting::safe_search_path();
    let series = Series::open(oid, Lock::Writing);
    let obstacle = plain::obstacle(oid, &COLUMNS, |trigger| {
        let is_own = |(name, fires)| trigger.name() == name && trigger.fires_always(fires);
        TRIGGERS_OF_SERIES.into_iter().any(is_own) && trigger.calls_in(schema, TRIGGER_FUNCTION)
    });
    if let Some(obstacle) = obstacle {
        NumberProblem::NotPlain { series: series.name, obstacle }.raise();
    }
    series.next(at, schema, by_owner)
}

/// Returns the name of a column that can contain serials.
fn text_column((name, kind): (String, pg_sys::Oid)) -> String {
    if ![pg_sys::TEXTOID, pg_sys::VARCHAROID].contains(&kind) {
        NumberProblem::NotText { column: name }.raise();
    }
    name
}

/// Returns the name and type of a column that can determine the period.
fn date_column((name, kind): (String, pg_sys::Oid)) -> (String, pg_sys::Oid) {
    if ![pg_sys::DATEOID, pg_sys::TIMESTAMPTZOID].contains(&kind) {
        NumberProblem::NotADate { column: name }.raise();
    }
    (name, kind)
}

/// Returns names for the two triggers that number a column. Drops earlier triggers that numbered this column, as well
/// as triggers that numbered columns that no longer exist.
fn names(table: pg_sys::Oid, key: &[u8], series: pg_sys::Oid, quoted: &str, column: &str) -> (String, String) {
    let mut taken = Vec::new();
    for found in triggers(table) {
        let is_former = found.key.as_deref() == Some(key);
        if found.table != table {
            if is_former {
                let partition = relation::of_relation(found.table).map(|name| name.quoted()).unwrap_or_default();
                NumberProblem::Numbered { partition, trigger: relation::identifier(&relation::utf8(&found.name)) }
                    .raise();
            }
            taken.push(found.name);
            continue;
        }
        if let Some(parent) = found.parent.filter(|_| is_former).and_then(relation::of_relation) {
            NumberProblem::NumberedAbove { partition: quoted.into(), parent: parent.quoted() }.raise();
        }
        if found.parent.is_some()
            || !is_former && found.key.is_none_or(|key| relation::column_type(table, &key).is_some())
        {
            taken.push(found.name);
            continue;
        }
        let trigger = relation::identifier(&relation::utf8(&found.name));
        Spi::run(&format!("DROP TRIGGER {trigger} ON {quoted}")).expect(ANSWERED);
        if let Some(former) = found.series.filter(|former| is_former && *former != series)
            && let Some(former) = relation::of_relation(former)
        {
            serial_at_commit::replaced(quoted, column, &former.quoted());
        }
    }
    let is_free = |name: &String| !taken.iter().any(|other| other == name.as_bytes());
    let suffixes = std::iter::once(String::new()).chain((2..).map(|n| format!("_{n}")));
    let mut pairs = suffixes.map(|n| (format!("snowflake_number{n}"), format!("snowflake_number_keep{n}")));
    pairs.find(|(number, keep)| is_free(number) && is_free(keep)).expect("the names are endless")
}

/// A trigger on a table or on one of its partitions.
struct SeriesTrigger {
    table: pg_sys::Oid,
    name: Vec<u8>,
    /// The column that the trigger numbers, or `None` if the trigger does not number rows.
    key: Option<Vec<u8>>,
    series: Option<pg_sys::Oid>,
    /// The partitioned table from which the table inherited the trigger.
    parent: Option<pg_sys::Oid>,
}

/// Returns the table's triggers that number rows or whose names could be those of such triggers. Also returns such
/// triggers on partitions, unless a partition inherited them from the table. A manually created trigger can have
/// arguments of any length, so long arguments are not read.
fn triggers(table: pg_sys::Oid) -> Vec<SeriesTrigger> {
    let read = Spi::connect_mut(|client| {
        let rows = client.update(
            "SELECT t.tgrelid, t.tgname::pg_catalog.text,
                    CASE WHEN pg_catalog.octet_length(t.tgargs) OPERATOR(pg_catalog.<) 1000 AND numbers THEN t.tgargs END,
                    CASE WHEN t.tgconstrrelid OPERATOR(pg_catalog.<>) 0::pg_catalog.oid THEN t.tgconstrrelid END,
                    (SELECT a.tgrelid FROM pg_catalog.pg_trigger AS a WHERE a.oid OPERATOR(pg_catalog.=) t.tgparentid)
             FROM pg_catalog.pg_trigger AS t JOIN pg_catalog.pg_proc AS p ON p.oid OPERATOR(pg_catalog.=) t.tgfoid,
                 LATERAL (SELECT p.proname OPERATOR(pg_catalog.=) 'snowflake_number_row'
                              OR p.proname OPERATOR(pg_catalog.=) 'snowflake_number_keep') AS called (numbers)
             WHERE (numbers OR pg_catalog.starts_with(t.tgname::pg_catalog.text, 'snowflake_number'))
               AND (t.tgrelid OPERATOR(pg_catalog.=) $1
                    OR t.tgparentid OPERATOR(pg_catalog.=) 0::pg_catalog.oid
                       AND EXISTS (SELECT FROM pg_catalog.pg_partition_tree($1) AS p
                                   WHERE p.relid::pg_catalog.oid OPERATOR(pg_catalog.=) t.tgrelid))
             ORDER BY t.tgrelid, t.tgname",
            None,
            &[table.into()],
        )?;
        let read = |row: pgrx::spi::SpiHeapTupleData<'_>| {
            Ok(SeriesTrigger {
                table: row.get(1)?.expect("a trigger has a table"),
                name: row.get::<TextValue>(2)?.expect("a trigger has a name").0,
                key: row.get::<Vec<u8>>(3)?.and_then(|all| all.split(|byte| *byte == 0).next().map(<[u8]>::to_vec)),
                series: row.get(4)?,
                parent: row.get(5)?,
            })
        };
        rows.map(read).collect::<Result<Vec<_>, SpiError>>()
    });
    read.expect(ANSWERED)
}
