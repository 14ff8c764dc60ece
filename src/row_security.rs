//! Reading all rows of a table or none.

use pgrx::pg_sys;

/// Row security is off while this lives: PostgreSQL raises an error where a policy would hide rows.
pub struct Off(i32);

impl Off {
    /// Switches it off.
    #[allow(unsafe_code)]
    pub fn new() -> Off {
        // SAFETY: C strings; the level is left again below, or when the transaction ends in an error.
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
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: the level that `new` entered.
            unsafe { pg_sys::AtEOXact_GUC(true, self.0) };
        }
    }
}
