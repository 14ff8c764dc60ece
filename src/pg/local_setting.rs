//! Changes settings during part of a statement.
#![allow(unsafe_code)]

use std::ffi::CStr;

use pgrx::pg_sys::{self, GucAction::GUC_ACTION_SAVE, GucContext::PGC_USERSET, GucSource::PGC_S_SESSION};

/// Changes a setting until this value is dropped.
pub struct LocalSetting(i32);

impl LocalSetting {
    /// Turns row security off, so that a query reads either all rows of a table or none. PostgreSQL raises an error if
    /// a policy would hide rows.
    pub fn without_row_security() -> LocalSetting {
        LocalSetting::set(c"row_security", c"off")
    }

    /// Makes unqualified names refer only to PostgreSQL's own objects. Code that is then run as a different role does
    /// not call functions from the session's search path.
    pub fn safe_search_path() -> LocalSetting {
        LocalSetting::set(c"search_path", c"pg_catalog, pg_temp")
    }

    fn set(name: &CStr, value: &CStr) -> LocalSetting {
        // SAFETY: the arguments are C strings. `drop` exits the nesting level. After an error, the end of the
        // transaction exits it.
        unsafe {
            let level = pg_sys::NewGUCNestLevel();
            let (name, value) = (name.as_ptr(), value.as_ptr());
            pg_sys::set_config_option(name, value, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
            LocalSetting(level)
        }
    }
}

impl Drop for LocalSetting {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: this is the nesting level that `set` entered.
            unsafe { pg_sys::AtEOXact_GUC(true, self.0) };
        }
    }
}
