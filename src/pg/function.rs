//! Functions in the catalog: the function that is being called, other functions in its schema, and the right to call
//! them.
#![allow(unsafe_code)]

use std::ffi::CStr;

use pgrx::callconv::{Arg, ArgAbi};
use pgrx::pg_sys;
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};

pub use crate::pg::versions::may_call;

/// A function call. This value does not correspond to an SQL argument.
pub struct Called(pub(super) pg_sys::FunctionCallInfo);

impl Called {
    /// Returns the schema of the function. Only a superuser can create a function that calls this library, so no other
    /// role can choose the schema.
    pub fn schema(&self) -> pg_sys::Oid {
        // SAFETY: PostgreSQL passes a valid call, which contains the called function. The function reads the catalog
        // caches in a transaction.
        unsafe {
            let function = (*self.0).flinfo.as_ref();
            function.map_or(pg_sys::InvalidOid, |function| pg_sys::get_func_namespace(function.fn_oid))
        }
    }
}

/// Returns the function in a schema that has this name and these argument types.
pub fn of(schema: pg_sys::Oid, name: &CStr, types: &[pg_sys::Oid]) -> Option<pg_sys::Oid> {
    // SAFETY: the call reads the catalog caches in a transaction. The keys have the types that this cache requires, and
    // are valid for the duration of the call.
    let found = unsafe {
        pg_sys::GetSysCacheOid(
            pg_sys::SysCacheIdentifier::PROCNAMEARGSNSP as i32,
            pg_sys::Anum_pg_proc_oid as pg_sys::AttrNumber,
            pg_sys::Datum::from(name.as_ptr()),
            pg_sys::Datum::from(pg_sys::buildoidvector(types.as_ptr(), types.len() as i32)),
            pg_sys::Datum::from(schema),
            pg_sys::Datum::null(),
        )
    };
    (found != pg_sys::InvalidOid).then_some(found)
}

// SAFETY: the value is the call itself, so it does not use any of the arguments.
unsafe impl<'call> ArgAbi<'call> for Called {
    unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'call>) -> Self {
        // SAFETY: a call can be obtained in every function.
        Called(unsafe { arg.unbox_unchecked() })
    }

    fn is_virtual_arg() -> bool {
        true
    }
}

// SAFETY: as in the implementation above, the type does not correspond to an SQL argument.
unsafe impl SqlTranslatable for Called {
    const TYPE_IDENT: &'static str = pgrx::pgrx_resolved_type!(Called);
    const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
    const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> = Ok(SqlMappingRef::Skip);
    const RETURN_SQL: Result<ReturnsRef, ReturnsError> = Err(ReturnsError::Datum);
}
