//! The result of a trigger function, and the values in the rows that PostgreSQL passes to it ([`crate::pg::fired`]).
#![allow(unsafe_code)]

use std::ffi::CStr;

use pgrx::callconv::{BoxRet, FcInfo};
use pgrx::datum::Datum;
use pgrx::pg_sys;
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};

/// The result of a trigger function: the row to write, or null if the result is ignored.
pub struct TriggerResult(pub(super) pg_sys::HeapTuple);

/// The error for a row that has no column with the requested name and type.
pub struct NoSuchColumn;

/// Returns the value and the type of a column in a row of a trigger's table. The column must have one of the given
/// types, or a domain over one of them. Returns `None` if the value is NULL.
///
/// The number and the type of the column are looked up at each call, in the description of the open table to which the
/// row belongs. The table's columns cannot change in the meantime: PostgreSQL refuses ALTER TABLE while a statement of
/// the same session uses the table or while triggers wait for the end of the transaction, and other sessions wait for
/// its lock.
///
/// # Safety
///
/// The row must be one that PostgreSQL passed to the trigger with this data.
pub(super) unsafe fn value(
    row: pg_sys::HeapTuple,
    data: &pg_sys::TriggerData,
    column: &CStr,
    expected: &[pg_sys::Oid],
) -> Result<Option<(pg_sys::Datum, pg_sys::Oid)>, NoSuchColumn> {
    // SAFETY: the row and its description belong together, and the name is a C string.
    unsafe {
        let description = (*data.tg_relation).rd_att;
        let number = pg_sys::SPI_fnumber(description, column.as_ptr());
        if number <= 0 {
            return Err(NoSuchColumn);
        }
        let kind = pg_sys::SPI_gettypeid(description, number);
        let kind = if expected.contains(&kind) { kind } else { pg_sys::getBaseType(kind) };
        if !expected.contains(&kind) {
            return Err(NoSuchColumn);
        }
        let mut null = false;
        let value = pg_sys::SPI_getbinval(row, description, number, &raw mut null);
        Ok((!null).then_some((value, kind)))
    }
}

/// Returns true if `session_replication_role` is `replica`, which means that this session applies changes from another
/// server. Only triggers that are enabled with ENABLE REPLICA or ENABLE ALWAYS fire in such a session.
pub fn replicates() -> bool {
    // SAFETY: this is a plain variable of this process.
    unsafe { pg_sys::SessionReplicationRole == pg_sys::SESSION_REPLICATION_ROLE_REPLICA as i32 }
}

// SAFETY: a trigger function returns a pointer to the row and never sets the NULL flag.
unsafe impl BoxRet for TriggerResult {
    unsafe fn box_into<'call>(self, call: &mut FcInfo<'call>) -> Datum<'call> {
        // SAFETY: the row outlives the call, because PostgreSQL passed it to the function.
        unsafe { call.return_raw_datum(pg_sys::Datum::from(self.0)) }
    }
}

// SAFETY: `trigger` is the type whose values are returned as above.
unsafe impl SqlTranslatable for TriggerResult {
    const TYPE_IDENT: &'static str = pgrx::pgrx_resolved_type!(TriggerResult);
    const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
    const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> = Err(ArgumentError::Datum);
    const RETURN_SQL: Result<ReturnsRef, ReturnsError> = Ok(ReturnsRef::One(SqlMappingRef::literal("trigger")));
}
