//! PostgreSQL's settings. This module reads a setting as text, regardless of its type and even if it is not defined yet, and
//! changes a setting.
#![allow(unsafe_code)]

use std::ffi::CStr;

use pgrx::pg_sys;

/// Returns the text of a setting in the configuration files or on the command line, or returns `None` if they do not contain the
/// setting.
pub fn configured(name: &CStr) -> Option<String> {
    // SAFETY: the name is a C string. With missing_ok, an unknown setting gives a null pointer instead of an error.
    let text = unsafe { pg_sys::GetConfigOption(name.as_ptr(), true, false) };
    if text.is_null() {
        return None;
    }
    // SAFETY: the pointer is not null, so it points to a C string that stays valid until the setting changes. The string is copied
    // immediately.
    Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// Changes a setting for this process. The setting must be one that any session is allowed to change.
pub fn set(name: &CStr, value: &CStr) {
    // SAFETY: the arguments are C strings, which PostgreSQL copies.
    unsafe {
        pg_sys::SetConfigOption(
            name.as_ptr(),
            value.as_ptr(),
            pg_sys::GucContext::PGC_USERSET,
            pg_sys::GucSource::PGC_S_SESSION,
        );
    }
}
