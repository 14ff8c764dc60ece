//! Determines from which tags a `dense` series may draw. The tag is an argument of a trigger. Because any role with the
//! TRIGGER privilege can create such a trigger, the argument alone grants no right. The right to draw comes from the
//! table's security label. Only one table in a database can have a given label.
//!
//! For a `gapless` series, the privileges on its table are enough: `serial.rs` and `serial_at_commit.rs` check them.

use std::ffi::CStr;

use pgrx::pg_sys;

use crate::faults::{self, Fault};
use crate::functions::extension;
use crate::message::serial::SerialProblem;
use crate::pg::text_arg::shown;
use crate::pg::{function, relation, role, security_label};

/// The function on which the owner of a series needs the EXECUTE privilege.
const DRAW: &CStr = c"snowflake_segment_nextval";

/// Assigns a tag to a new series, or returns why the series cannot have the tag. `schema` is the extension's schema.
pub fn give(table: pg_sys::Oid, tag: &[u8], schema: pg_sys::Oid) -> Result<(), SerialProblem> {
    check_table(table, schema)?;
    check_others(table, tag)?;
    security_label::set(table, tag);
    Ok(())
}

/// Returns an error if a series may not draw from this tag. `schema` is the extension's schema. The series is locked.
pub fn check(table: pg_sys::Oid, tag: &[u8], schema: pg_sys::Oid) -> Result<(), SerialProblem> {
    if faults::on(Fault::TagTrusted) {
        return Ok(());
    }
    check_table(table, schema)?;
    if security_label::has(table, tag) {
        return Ok(());
    }
    let label = relation::utf8(&relation::literal(tag)).trim().into();
    Err(SerialProblem::NotHolder { series: name(table), tag: shown(tag), label })
}

/// Raises an error unless the current user may set this label on an object. `table` is the OID of the object if it is a
/// table. The owner of a series can set only the tag that a new series of this name would have.
pub fn check_label(table: Option<pg_sys::Oid>, label: &[u8]) {
    let checked = match table {
        Some(table) if role::is_superuser() => check_others(table, label),
        Some(table) if relation::identity(table).is_some_and(|own| own == label) => {
            let schema = extension::find().unwrap_or(pg_sys::InvalidOid);
            check_table(table, schema).and_then(|()| check_others(table, label))
        }
        _ if role::is_superuser() => Ok(()),
        _ => Err(SerialProblem::Label { label: shown(label) }),
    };
    checked.unwrap_or_else(|problem| problem.raise());
}

/// Checks the table of a series and the table's owner.
fn check_table(table: pg_sys::Oid, schema: pg_sys::Oid) -> Result<(), SerialProblem> {
    if relation::is_temporary(table) {
        return Err(SerialProblem::Temporary { series: name(table) });
    }
    let owner = relation::owner(table);
    match (function::of(schema, DRAW, &[pg_sys::TEXTOID]), owner) {
        (Some(draw), Some(owner)) if function::may_call(draw, owner) => Ok(()),
        _ => Err(SerialProblem::OwnerMayNotDraw {
            series: name(table),
            owner: owner.and_then(role::name).unwrap_or_default(),
            function: format!("{}.{}(text)", relation::schema_name(schema).unwrap_or_default(), DRAW.to_string_lossy()),
        }),
    }
}

/// Checks that no other table has this tag. A renamed table keeps its tag.
fn check_others(table: pg_sys::Oid, tag: &[u8]) -> Result<(), SerialProblem> {
    match security_label::holder(tag, table) {
        Some(other) => Err(SerialProblem::SharedTag { series: name(table), other: name(other) }),
        None => Ok(()),
    }
}

fn name(table: pg_sys::Oid) -> String {
    relation::of_relation(table).map(|name| name.quoted()).unwrap_or_default()
}
