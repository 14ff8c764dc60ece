//! Reads PostgreSQL's settings as text, regardless of their types and even before they are defined, and changes
//! settings.
#![allow(unsafe_code)]

use std::ffi::CStr;

use pgrx::pg_sys::{self, GucContext::PGC_USERSET, GucSource::PGC_S_SESSION};

use crate::pg::c_string;

/// Returns the current value of a setting, as text. Returns `None` if the setting does not exist.
pub fn configured(name: &CStr) -> Option<String> {
    // SAFETY: the name is a C string. With missing_ok, the result for an unknown setting is a null pointer instead of
    // an error. Any other result is a C string that remains valid until the setting changes. It is copied immediately.
    unsafe { c_string::lossy(pg_sys::GetConfigOption(name.as_ptr(), true, false)) }
}

/// Changes a setting for this process. Only settings that every session is allowed to change can be passed.
pub fn set(name: &CStr, value: &CStr) {
    // SAFETY: the arguments are C strings, which PostgreSQL copies.
    unsafe { pg_sys::SetConfigOption(name.as_ptr(), value.as_ptr(), PGC_USERSET, PGC_S_SESSION) };
}
