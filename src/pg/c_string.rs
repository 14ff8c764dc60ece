//! C strings that PostgreSQL and libpq return.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char};

/// Returns the bytes of a C string, or `None` for a null pointer.
///
/// # Safety
///
/// `text` is null or points to a C string that is valid as long as the result is used.
pub unsafe fn bytes<'text>(text: *const c_char) -> Option<&'text [u8]> {
    // SAFETY: the pointer is not null, and the caller guarantees that it then points to a C string.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_bytes())
}

/// Copies a C string as UTF-8, or returns `None` for a null pointer. Bytes that are not valid UTF-8 are replaced.
///
/// # Safety
///
/// `text` is null or points to a C string.
pub unsafe fn lossy(text: *const c_char) -> Option<String> {
    // SAFETY: the caller guarantees the same.
    unsafe { bytes(text) }.map(|bytes| String::from_utf8_lossy(bytes).into_owned())
}
