//! The warning that CREATE EXTENSION raises if the library is not preloaded.

use pgrx::prelude::*;

use crate::config::identity;
use crate::message::preload::NotPreloaded;

/// Warns if the library is not preloaded. Without this warning, users would not notice the problem until they use the
/// extension. The extension script creates this function, calls it, and drops it.
#[pg_extern(sql = false)]
fn snowflake_warn_unless_preloaded() {
    if identity::find().is_none() {
        NotPreloaded.warn();
    }
}
