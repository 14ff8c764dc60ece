//! Which tags a series of kind `dense` may draw from. The tag is an argument of a trigger, which the owner of any table can write, so it
//! gives no right.

use std::ffi::CStr;

use pgrx::pg_sys;

use crate::faults::{self, Fault};
use crate::message::serial_problem::SerialProblem;
use crate::pg::relation::{self, Found};
use crate::pg::{function, plans, role};

/// The function whose privilege the owner of a series needs.
const DRAW: &CStr = c"snowflake_segment_nextval";

/// Returns why a new series does not get this tag. `schema` is that of the extension.
pub fn check_new(table: pg_sys::Oid, tag: &[u8], schema: pg_sys::Oid) -> Result<(), SerialProblem> {
    check_others(tag, check_table(table, schema)?, table, None)
}

/// Returns why a series does not draw from this tag. `schema` is that of the extension. The series is locked.
pub fn check(table: pg_sys::Oid, tag: &[u8], schema: pg_sys::Oid) -> Result<(), SerialProblem> {
    if faults::on(Fault::TagTrusted) {
        return Ok(());
    }
    let draw = check_table(table, schema)?;
    if relation::identity(table).is_some_and(|own| own == tag) {
        return Ok(());
    }
    // A series that was renamed, or restored from a dump, keeps its tag.
    match relation::of_identity(tag) {
        Found::Nothing => Ok(()),
        Found::Malformed => Err(SerialProblem::Definition { series: name(table) }),
        Found::Relation(other) => check_others(tag, draw, table, Some(other)),
    }
}

/// Checks the table of a series and its owner. Returns the function whose privilege the owner has.
fn check_table(table: pg_sys::Oid, schema: pg_sys::Oid) -> Result<pg_sys::Oid, SerialProblem> {
    if relation::is_temporary(table) {
        return Err(SerialProblem::Temporary { series: name(table) });
    }
    let owner = relation::owner(table);
    match (function::of(schema, DRAW, &[pg_sys::TEXTOID]), owner) {
        (Some(draw), Some(owner)) if function::may_call(draw, owner) => Ok(draw),
        _ => Err(SerialProblem::OwnerMayNotDraw {
            series: name(table),
            owner: owner.and_then(role::name).unwrap_or_default(),
            function: format!("{}.{}(text)", relation::schema_name(schema).unwrap_or_default(), DRAW.to_string_lossy()),
        }),
    }
}

/// Checks that no different series of kind `dense` that can draw has this tag: the relation `of`, or any one.
fn check_others(tag: &[u8], draw: pg_sys::Oid, own: pg_sys::Oid, of: Option<pg_sys::Oid>) -> Result<(), SerialProblem> {
    // The tag is the last argument. Each argument ends with a zero byte.
    let end = [&[0][..], tag, &[0][..]].concat();
    let which = if of.is_some() { "=" } else { "<>" };
    let query = format!(
        "SELECT t.tgrelid
         FROM pg_catalog.pg_trigger AS t
             JOIN pg_catalog.pg_proc AS p ON p.oid OPERATOR(pg_catalog.=) t.tgfoid
             JOIN pg_catalog.pg_proc AS d ON d.pronamespace OPERATOR(pg_catalog.=) p.pronamespace
             JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) t.tgrelid
         WHERE t.tgrelid OPERATOR(pg_catalog.{which}) $1 AND t.tgrelid OPERATOR(pg_catalog.<>) $2
           AND p.proname OPERATOR(pg_catalog.=) 'snowflake_series_row' AND d.oid OPERATOR(pg_catalog.=) $3
           AND t.tgnargs OPERATOR(pg_catalog.=) 5
           AND pg_catalog.substr(t.tgargs, pg_catalog.octet_length(t.tgargs) OPERATOR(pg_catalog.-)
               pg_catalog.octet_length($4) OPERATOR(pg_catalog.+) 1) OPERATOR(pg_catalog.=) $4
           AND c.relpersistence OPERATOR(pg_catalog.<>) 't'
           AND pg_catalog.has_function_privilege(c.relowner, d.oid, 'EXECUTE')
         ORDER BY t.tgrelid LIMIT 1"
    );
    let arguments = [of.unwrap_or(own).into(), own.into(), draw.into(), end.into()];
    match plans::first(&query, &arguments, |row| row.get::<pg_sys::Oid>(1)).flatten() {
        Some(other) => Err(SerialProblem::SharedTag { series: name(own), other: name(other) }),
        None => Ok(()),
    }
}

fn name(table: pg_sys::Oid) -> String {
    relation::of_relation(table).map(|name| name.quoted()).unwrap_or_default()
}
