//! The library is not preloaded, so its shared memory and its settings do not exist.

use pgrx::{PgLogLevel, PgSqlErrorCode};

use crate::message::report::Report;

/// The library is not in `shared_preload_libraries`.
pub struct NotPreloaded;

impl NotPreloaded {
    pub fn report(&self) -> Report {
        Report::of(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            "library \"snowflake_pg\" is not preloaded",
            "",
            "Add snowflake_pg to \"shared_preload_libraries\" in postgresql.conf and restart the server.",
        )
    }

    /// Warns the session that creates the extension.
    pub fn warn(&self) {
        let mut report = self.report();
        report.detail =
            "Until the library is preloaded, the server cannot issue IDs, and only functions called with a \
                         layout argument can decode IDs."
                .into();
        report.send(PgLogLevel::WARNING);
    }
}
