//! Checks the EXECUTE privilege on a function that is executed under a different name.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::ffi::CStr;

use pgrx::pg_sys::{self, AclResult::ACLCHECK_NO_PRIV, ObjectType::OBJECT_FUNCTION};

/// A function, a role and the start time of a statement.
type PrivilegeKey = (*const std::ffi::c_char, pg_sys::Oid, pg_sys::TimestampTz);

thread_local! {
    /// The most recent successful check.
    static ALLOWED: Cell<Option<PrivilegeKey>> = const { Cell::new(None) };
}

/// Raises PostgreSQL's error unless the current role may execute a function. `is_allowed` performs the check. It is
/// called once for each statement and role.
#[inline]
pub fn check(function: &'static CStr, is_allowed: impl FnOnce(pg_sys::Oid) -> bool) {
    // SAFETY: the functions read variables of this process.
    let key = unsafe { (function.as_ptr(), pg_sys::GetUserId(), pg_sys::GetCurrentStatementStartTimestamp()) };
    if ALLOWED.get() == Some(key) {
        return;
    }
    if !is_allowed(key.1) {
        // SAFETY: the name is a C string.
        unsafe { pg_sys::aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_FUNCTION, function.as_ptr()) };
    }
    ALLOWED.set(Some(key));
}
