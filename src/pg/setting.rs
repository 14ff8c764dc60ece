//! Settings of PostgreSQL: reads a setting as text, whatever its type, even if it is not defined yet, and sets one.
#![allow(unsafe_code)]

use std::ffi::CStr;

use pgrx::pg_sys;

/// The text of a setting in the configuration files or on the command line; `None` if they do not contain the setting.
pub fn configured(name: &CStr) -> Option<String> {
    // SAFETY: the name is a C string; with missing_ok an unknown setting is a null pointer, not an error.
    let text = unsafe { pg_sys::GetConfigOption(name.as_ptr(), true, false) };
    if text.is_null() {
        return None;
    }
    // SAFETY: the pointer is not null, so it is a C string that stays valid until the setting changes. It is copied at
    // once.
    Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// Changes a setting for this process. Any session must be allowed to change it.
pub fn set(name: &CStr, value: &CStr) {
    // SAFETY: C strings, which PostgreSQL copies.
    unsafe {
        pg_sys::SetConfigOption(
            name.as_ptr(),
            value.as_ptr(),
            pg_sys::GucContext::PGC_USERSET,
            pg_sys::GucSource::PGC_S_SESSION,
        );
    }
}
