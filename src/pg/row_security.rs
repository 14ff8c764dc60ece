//! Switches row security off, so that a query reads either all rows of a table or none.
#![allow(unsafe_code)]

use pgrx::pg_sys;

/// Keeps row security off while this value lives. PostgreSQL raises an error if a policy would hide rows.
pub struct Off(i32);

impl Off {
    /// Switches row security off.
    pub fn new() -> Off {
        // SAFETY: the arguments are C strings. `drop` leaves the level again. After an error, the end of the transaction leaves
        // the level.
        unsafe {
            let level = pg_sys::NewGUCNestLevel();
            pg_sys::set_config_option(
                c"row_security".as_ptr(),
                c"off".as_ptr(),
                pg_sys::GucContext::PGC_USERSET,
                pg_sys::GucSource::PGC_S_SESSION,
                pg_sys::GucAction::GUC_ACTION_SAVE,
                true,
                0,
                false,
            );
            Off(level)
        }
    }
}

impl Drop for Off {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: this is the level that `new` entered.
            unsafe { pg_sys::AtEOXact_GUC(true, self.0) };
        }
    }
}
