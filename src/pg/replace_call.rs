//! Planner support: replaces the function that an expression calls with a different one, so that COPY keeps its batches
//! ([`crate::functions::copy`]). Conditions on times need no such support, because `sql/between.sql` defines them in SQL.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::ptr;

use pgrx::datum::Internal;
use pgrx::prelude::*;

use crate::pg::function;

/// Answers a planner request. If the planner requests a simpler form of a call that is not part of a query, the answer
/// is a call to the function that `other` returns for the name of the called function. It has the same arguments, and
/// both functions are in the same schema. Otherwise, the answer is that there is no simpler form.
pub fn replace_call(request: Internal, other: impl Fn(&[u8]) -> Option<&'static CStr>) -> Internal {
    let call = request.unwrap().and_then(|request| {
        // SAFETY: PostgreSQL passes a node to a support function. The tag shows that it is a SupportRequestSimplify,
        // whose call is valid.
        unsafe { replaced(request.cast_mut_ptr(), other) }
    });
    // A null pointer means that there is no answer. An SQL NULL would be an error.
    Internal::from(Some(pg_sys::Datum::from(call.unwrap_or(ptr::null_mut()))))
}

/// Returns the new call, or `None` if the call must not be replaced.
///
/// # Safety
///
/// `request` points to a node that PostgreSQL has passed to a support function.
unsafe fn replaced(
    request: *mut pg_sys::Node,
    other: impl Fn(&[u8]) -> Option<&'static CStr>,
) -> Option<*mut pg_sys::FuncExpr> {
    // SAFETY: the caller guarantees that the pointer is valid. The catalog caches are read in a transaction. A name
    // from them is null or a C string that is valid for the duration of this call.
    unsafe {
        if (*request).type_ != pg_sys::NodeTag::T_SupportRequestSimplify {
            return None;
        }
        let request = request.cast::<pg_sys::SupportRequestSimplify>();
        if !(*request).root.is_null() {
            return None;
        }
        let call = (*request).fcall;
        let name = pg_sys::get_func_name((*call).funcid);
        if name.is_null() {
            return None;
        }
        // PostgreSQL checks only the privilege on the function that is finally called.
        let function = beside((*call).funcid, other(CStr::from_ptr(name).to_bytes())?)
            .filter(|function| function::may_call(*function, pg_sys::GetUserId()))?;
        // PostgreSQL does not accept the node of the request itself.
        let copy = pg_sys::copyObjectImpl(call.cast()).cast::<pg_sys::FuncExpr>();
        (*copy).funcid = function;
        Some(copy)
    }
}

/// Returns the function with this name that has the same argument types and schema as the given function.
fn beside(function: pg_sys::Oid, name: &CStr) -> Option<pg_sys::Oid> {
    let (mut types, mut number) = (ptr::null_mut(), 0);
    // SAFETY: the functions read the catalog caches in a transaction. The first one returns one type for each argument,
    // or null if there are no arguments.
    let (schema, types) = unsafe {
        pg_sys::get_func_signature(function, &raw mut types, &raw mut number);
        let types = if number > 0 { std::slice::from_raw_parts(types, number as usize) } else { &[] };
        (pg_sys::get_func_namespace(function), types)
    };
    function::of(schema, name, types)
}
