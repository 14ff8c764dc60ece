//! The result row of a function that is declared to return a composite type.
//!
//! ALTER TABLE and ALTER TYPE cannot make such a row stale (CVE-2026-6460): it has the type `record` with the columns of this function's
//! declaration, which are read again at each call, and no table or composite type of a user has part in it. No function of this
//! library takes a row as an argument or reads the columns of a composite value, so that no value with an older definition is read.
#![allow(unsafe_code)]

use pgrx::PgTupleDesc;
use pgrx::prelude::*;

/// Returns a row of these columns, with the result type of the call. `fcinfo` is the value that PostgreSQL passed to the current
/// call. The function must be declared to return exactly these columns, and none of them may be of a type that is passed by
/// reference.
pub fn row<const N: usize>(
    fcinfo: pg_sys::FunctionCallInfo,
    columns: [Option<pg_sys::Datum>; N],
) -> PgHeapTuple<'static, AllocatedByRust> {
    let mut descriptor: pg_sys::TupleDesc = std::ptr::null_mut();
    // SAFETY: the caller passes the current call's `fcinfo`, and columns of the declared types, which are passed by value.
    // `descriptor` is set if `get_call_result_type` reports a composite type.
    let tuple = unsafe {
        let class = pg_sys::get_call_result_type(fcinfo, std::ptr::null_mut(), &raw mut descriptor);
        assert!(class == pg_sys::TypeFuncClass::TYPEFUNC_COMPOSITE, "the function is not declared to return a record");
        PgHeapTuple::from_datums(PgTupleDesc::from_pg_copy(pg_sys::BlessTupleDesc(descriptor)), columns)
    };
    tuple.expect("the function is declared with these columns")
}
