//! The version of the library that a session runs. The version in a database's catalog can be different until `ALTER
//! EXTENSION .. UPDATE` is run, and the version of the file on disk can be different until the server restarts.

use pgrx::prelude::*;

/// Returns the version of the library that this session runs, in the same form as `pg_extension.extversion`.
#[pg_extern(stable, strict, parallel_safe)]
fn snowflake_version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}
