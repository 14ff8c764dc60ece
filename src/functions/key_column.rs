//! The column of IDs that the argument `key` names.

use pgrx::prelude::*;

use crate::message::argument::ArgumentProblem;
use crate::pg::relation::{self, Name};
use crate::pg::text_arg::Text;

/// A column of an integer type.
pub struct KeyColumn {
    /// The quoted name of the column.
    pub name: String,
    /// An expression of type `bigint` that returns the value of the column. If the column itself is of type `bigint`,
    /// the planner can use an index on it.
    pub id: String,
}

/// Returns a column of a table. Raises an error if the table does not have this column or if the column is not of an
/// integer type.
pub fn of(oid: pg_sys::Oid, table: &Name, key: Text<'_>) -> KeyColumn {
    let name = relation::identifier(&key.name());
    match relation::column_type(oid, key.0) {
        Some(pg_sys::INT8OID | pg_sys::INT4OID | pg_sys::INT2OID) => {}
        // A cast would also convert values of non-integer types.
        Some(_) => ArgumentProblem::NotIntegers { column: name }.raise(),
        None => ArgumentProblem::NoColumn { table: table.quoted(), column: name }.raise(),
    }
    let id = format!("({name})::pg_catalog.int8");
    KeyColumn { name, id }
}
