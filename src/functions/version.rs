//! The version of the library that a session runs. The catalog of a database can be of another version until `ALTER EXTENSION ..
//! UPDATE`, and the file on disk until the server restarts.

use pgrx::prelude::*;

/// The version of the library that this session runs, as in `pg_extension.extversion`.
#[pg_extern(stable, strict, parallel_safe)]
fn snowflake_version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}
