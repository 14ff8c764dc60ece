//! The warning of CREATE EXTENSION if the library is not preloaded.

use pgrx::prelude::*;

use crate::config::identity;
use crate::message::error::Error;

/// Warns if the library is not preloaded. Otherwise the user would learn of it only at the first use of the extension. The
/// extension script creates this function, calls it and drops it.
#[pg_extern(sql = false)]
fn snowflake_warn_unless_preloaded() {
    if identity::find().is_none() {
        let mut report = Error::NotPreloaded.report();
        report.detail = "Until it is preloaded, the server cannot issue IDs, and only functions that are passed a layout can decode \
             IDs.".into();
        report.error().report(PgLogLevel::WARNING);
    }
}
