//! The trigger that numbers the rows of a table when the transaction commits.

use pgrx::prelude::*;
use pgrx::spi::SpiError;

use crate::functions::extension;
use crate::functions::series_definition::{Series, raise};
use crate::message::error::Error;
use crate::message::serial_problem::SerialProblem;
use crate::pg::fired::{Event, Timing};
use crate::pg::local_setting::LocalSetting;
use crate::pg::locked::Lock;
use crate::pg::plans;
use crate::pg::relation::{self, ANSWERED};
use crate::pg::role::As;
use crate::pg::text_arg::{Text, shown};
use crate::pg::text_value::TextValue;
use crate::pg::trigger::{Row, TriggerCall};

/// The maximum length of the name of a series in the arguments of the trigger: a schema and a table, with every character doubled.
const MAX_SERIES: usize = 600;

/// Makes a table number its rows at the end of the transaction. A row gets the next serial of the series if `key` is NULL and, if a
/// column `date_key` is named, if that column is not NULL. That column then determines the period.
#[pg_extern(sql = "CREATE FUNCTION snowflake_number_at_commit(relation regclass, key text, series regclass, \
           date_key text DEFAULT NULL) RETURNS void VOLATILE PARALLEL UNSAFE LANGUAGE c \
           AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';")]
fn snowflake_number_at_commit(
    relation: Option<pg_sys::Oid>,
    key: Option<Text<'_>>,
    series: Option<pg_sys::Oid>,
    date_key: Option<Text<'_>>,
) {
    let null = |argument, names| -> ! { Error::NullArgument { argument, names }.raise() };
    let oid = relation.unwrap_or_else(|| null("relation", "table"));
    let key = key.unwrap_or_else(|| null("key", "column"));
    let series = series.unwrap_or_else(|| null("series", "series"));
    Series::open(series, Lock::Reading);
    let gone = |table: pg_sys::Oid| -> ! { Error::NoTable { table: table.to_u32() }.raise() };
    let name = relation::of_relation(oid).unwrap_or_else(|| gone(oid));
    relation::check_owner(oid);
    if !relation::is_table(oid) {
        raise(SerialProblem::NotATable { relation: name.quoted() });
    }
    let table = relation::lock(oid, "SHARE ROW EXCLUSIVE").unwrap_or_else(|| gone(oid)).quoted();
    let name = relation::identity(series).unwrap_or_else(|| gone(series));
    trusted(&TextValue(name.clone()), oid, &table);
    let column = |name: Text<'_>| {
        let quoted = relation::identifier(&name.name());
        match relation::column_type(oid, name.0) {
            Some(kind) => (quoted, kind),
            None => raise(SerialProblem::NoColumn { table: table.clone(), column: quoted, by_trigger: false }),
        }
    };
    let column_name = text_column(column(key));
    let date = date_key.map(|name| (date_column(column(name)).0, name));

    let trigger = free_name(oid, key.0, &table);
    let mut statement = format!(
        "CREATE CONSTRAINT TRIGGER {trigger} AFTER INSERT OR UPDATE ON {table} DEFERRABLE INITIALLY DEFERRED
         FOR EACH ROW WHEN (NEW.{column_name} IS NULL"
    );
    if let Some((name, _)) = &date {
        statement.push_str(&format!(" AND NEW.{name} IS NOT NULL"));
    }
    statement.push_str(&format!(") EXECUTE FUNCTION {}.snowflake_number_row(", extension::schema()));
    let mut arguments = vec![relation::literal(key.0), relation::literal(&name)];
    arguments.extend(date.map(|(_, name)| relation::literal(name.0)));
    relation::run([statement.as_bytes(), &arguments.join(&b", "[..]), b")"].concat());
}

/// Numbers the row for which the trigger was queued, unless a later statement of the transaction has changed or deleted this version of
/// the row. A changed row is queued again.
#[pg_extern(sql = "CREATE FUNCTION snowflake_number_row() RETURNS trigger VOLATILE PARALLEL UNSAFE LANGUAGE c \
                   AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';")]
fn snowflake_number_row(call: TriggerCall) -> Row {
    let Some(fired) = call.fired() else { raise(SerialProblem::NotANumberTrigger) };
    let arguments = fired.arguments();
    let written = matches!(fired.event(), Event::Insert | Event::Update);
    let (Timing::AfterRow, true, [key, series, date @ ..]) = (fired.timing(), written, &arguments[..]) else {
        raise(SerialProblem::NotANumberTrigger)
    };
    if series.count_bytes() > MAX_SERIES {
        raise(SerialProblem::NotANumberTrigger);
    }
    let oid = fired.table();
    let table = relation::of_relation(oid).unwrap_or_else(|| Error::NoTable { table: oid.to_u32() }.raise()).quoted();
    let column = |name: &std::ffi::CStr| {
        let quoted = relation::identifier(&relation::utf8(name.to_bytes()));
        match relation::column_type(oid, name.to_bytes()) {
            Some(kind) => (quoted, kind),
            None => raise(SerialProblem::NoColumn { table: table.clone(), column: quoted, by_trigger: true }),
        }
    };
    let key = text_column(column(key));
    let date = date.first().map(|name| date_column(column(name)));
    let schema = relation::schema_name(fired.schema()).expect("the function that runs has a schema");
    // The types of both arguments are certain, so no function that somebody has added to the schema fits better.
    let (time, has_time) = match date {
        Some((date, kind)) => {
            let kind = if kind == pg_sys::DATEOID { "date" } else { "timestamptz" };
            (format!("{date}::pg_catalog.{kind}"), format!(" AND {date} IS NOT NULL"))
        }
        None => ("pg_catalog.now()".into(), String::new()),
    };

    // The owner of the table can update the column and the series, so a role that inserts rows needs neither privilege. That role chooses
    // neither the series nor the functions that triggers and constraints then call.
    let _owner = As::new(fired.owner());
    let _path = LocalSetting::safe_search_path();
    let name = TextValue(series.to_bytes().to_vec());
    let taken = trusted(&name, oid, &table);
    let place = fired.place();
    // The serial is computed only for a row that is still there, because its number would otherwise be missing.
    let next = format!(
        "SELECT {schema}.snowflake_serial($2::pg_catalog.regclass, {time}) FROM ONLY {table}
         WHERE ctid OPERATOR(pg_catalog.=) $1 AND {key} IS NULL{has_time}"
    );
    let Some(serial) = plans::first(&next, &[place.into(), taken.into()], |row| row.get::<TextValue>(1)) else {
        return fired.unchanged();
    };
    let Some(serial) = serial else {
        let series = relation::utf8(series.to_bytes());
        raise(SerialProblem::Gone { table, series })
    };
    let store = format!(
        "UPDATE ONLY {table} SET {key} = $2 WHERE ctid OPERATOR(pg_catalog.=) $1
         RETURNING {key}::pg_catalog.text OPERATOR(pg_catalog.=) $2"
    );
    let stored = plans::first(&store, &[place.into(), serial.clone().into()], |row| row.get::<bool>(1)).flatten();
    if stored != Some(true) {
        raise(SerialProblem::NotStored { table, serial: shown(&serial.0) });
    }
    fired.unchanged()
}

/// Returns the name of a column that can hold serials.
fn text_column((name, kind): (String, pg_sys::Oid)) -> String {
    if ![pg_sys::TEXTOID, pg_sys::VARCHAROID].contains(&kind) {
        raise(SerialProblem::NotText { column: name });
    }
    name
}

/// Returns the name and the type of a column that can determine the period.
fn date_column((name, kind): (String, pg_sys::Oid)) -> (String, pg_sys::Oid) {
    if ![pg_sys::DATEOID, pg_sys::TIMESTAMPTZOID].contains(&kind) {
        raise(SerialProblem::NotADate { column: name });
    }
    (name, kind)
}

/// Returns the series of this name, or `None` if there is none. Raises an error unless it belongs to the owner of the table or to a
/// superuser: the triggers of a series run as the role that takes a number.
fn trusted(name: &TextValue, oid: pg_sys::Oid, table: &str) -> Option<pg_sys::Oid> {
    let find = "SELECT c.oid, c.relowner OPERATOR(pg_catalog.=) t.relowner OR r.rolsuper
         FROM pg_catalog.pg_class AS t, pg_catalog.pg_class AS c
             JOIN pg_catalog.pg_roles AS r ON r.oid OPERATOR(pg_catalog.=) c.relowner
         WHERE t.oid OPERATOR(pg_catalog.=) $2 AND c.oid OPERATOR(pg_catalog.=) pg_catalog.to_regclass($1)";
    let found = plans::first(find, &[name.clone().into(), oid.into()], |row| {
        Ok((row.get::<pg_sys::Oid>(1)?, row.get::<bool>(2)?))
    });
    let (series, is_trusted) = found?;
    if is_trusted != Some(true) {
        let series = relation::utf8(&name.0);
        raise(SerialProblem::OtherOwner { table: table.into(), series });
    }
    series
}

/// Drops the trigger that numbers this column, if there is one, and returns a name for the new one.
fn free_name(table: pg_sys::Oid, key: &[u8], quoted: &str) -> String {
    let read = Spi::connect_mut(|client| {
        let rows = client.update(
            "SELECT t.tgname::pg_catalog.text,
                    CASE WHEN p.proname OPERATOR(pg_catalog.=) 'snowflake_number_row' THEN t.tgargs END
             FROM pg_catalog.pg_trigger AS t JOIN pg_catalog.pg_proc AS p ON p.oid OPERATOR(pg_catalog.=) t.tgfoid
             WHERE t.tgrelid OPERATOR(pg_catalog.=) $1",
            None,
            &[table.into()],
        )?;
        rows.map(|row| Ok((row.get::<TextValue>(1)?, row.get::<Vec<u8>>(2)?))).collect::<Result<Vec<_>, SpiError>>()
    });
    let mut taken = Vec::new();
    for (name, arguments) in read.expect(ANSWERED) {
        let name = name.expect("a trigger has a name").0;
        if arguments.is_some_and(|arguments| arguments.split(|byte| *byte == 0).next() == Some(key)) {
            let name = relation::identifier(&relation::utf8(&name));
            Spi::run(&format!("DROP TRIGGER {name} ON {quoted}")).expect(ANSWERED);
        } else {
            taken.push(name);
        }
    }
    let names = std::iter::once("snowflake_number".to_string()).chain((2..).map(|n| format!("snowflake_number_{n}")));
    names.into_iter().find(|name| !taken.iter().any(|other| other == name.as_bytes())).expect("the names are endless")
}
