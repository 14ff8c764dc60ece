//! The version of the library that a session runs. A database's catalog can have a different version until `ALTER EXTENSION ..
//! UPDATE` is run, and the file on disk can have a different version until the server restarts.

use pgrx::prelude::*;

/// Returns the version of the library that this session runs, in the same form as `pg_extension.extversion`.
#[pg_extern(stable, strict, parallel_safe)]
fn snowflake_version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}
