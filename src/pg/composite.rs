//! The result row of a function that is declared to return a composite type.
//!
//! ALTER TABLE and ALTER TYPE cannot make such a row stale (CVE-2026-6460). The row has type `record` with the columns
//! of the function's own declaration, which are read again at each call, and it does not involve any user-defined table
//! or composite type. Functions of this library neither take rows as arguments nor read columns of composite values, so
//! they never read a value that has an older definition.
#![allow(unsafe_code)]

use pgrx::PgTupleDesc;
use pgrx::prelude::*;

/// Returns a row of these columns that has the result type of the call. `fcinfo` is the value that PostgreSQL passed to
/// the current call. The function must be declared to return exactly these columns, and all of them must have types
/// that are passed by value.
pub fn row<const N: usize>(
    fcinfo: pg_sys::FunctionCallInfo,
    columns: [Option<pg_sys::Datum>; N],
) -> PgHeapTuple<'static, AllocatedByRust> {
    let mut descriptor: pg_sys::TupleDesc = std::ptr::null_mut();
    // SAFETY: the caller passes the `fcinfo` of the current call, and columns of the declared types, which are passed
    // by value. `descriptor` is set if `get_call_result_type` reports a composite type.
    let tuple = unsafe {
        let class = pg_sys::get_call_result_type(fcinfo, std::ptr::null_mut(), &raw mut descriptor);
        assert!(class == pg_sys::TypeFuncClass::TYPEFUNC_COMPOSITE, "the function is not declared to return a record");
        PgHeapTuple::from_datums(PgTupleDesc::from_pg_copy(pg_sys::BlessTupleDesc(descriptor)), columns)
    };
    tuple.expect("the function is declared with these columns")
}
