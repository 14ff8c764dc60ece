//! Snowflake IDs as PostgreSQL primary keys: `id bigint PRIMARY KEY DEFAULT snowflake_nextval()`.
//!
//! This crate is the part that uses PostgreSQL. `crates/flake` decides which ID comes next and what its bits mean.

use pgrx::prelude::*;

mod config;
mod faults;
mod functions;
mod generator;
mod message;
mod pg;

use config::{guc, identity};
use generator::{draw, mark_worker, shmem, standby_watch, stats};
use pg::discard;

::pgrx::pg_module_magic!(name, version);

pgrx::extension_sql_file!(
    "../sql/between.sql",
    name = "between",
    requires = [encode::snowflake_first_id_from, encode::snowflake_last_id_before]
);
pgrx::extension_sql_file!("../sql/text.sql", name = "text");
pgrx::extension_sql_file!("../sql/layouts.sql", name = "layouts", requires = [layouts::snowflake_layouts]);
pgrx::extension_sql_file!(
    "../sql/status.sql",
    name = "status",
    requires = [status::snowflake_status, status::snowflake_last_issuer, status::snowflake_stat_backends]
);
pgrx::extension_sql_file!(
    "../sql/grants.sql",
    name = "grants",
    requires = [admin::snowflake_accept_clock, admin::snowflake_set_mark, status::snowflake_stat_reset, "status"]
);
// Requires another script, so that every build puts it in the same place.
pgrx::extension_sql_file!("../sql/preload.sql", name = "preload", requires = ["grants"]);
pgrx::extension_sql_file!("../sql/comments.sql", name = "comments", finalize);

/// Runs once in the postmaster, or, where the library is not preloaded, in each session that calls one of its functions. In such a
/// session, PostgreSQL allows neither shared memory nor settings of the postmaster. Nothing is set up, and every function that
/// needs them raises an error ([`message::error::Error::NotPreloaded`]).
#[allow(unsafe_code)]
#[pg_guard]
pub extern "C-unwind" fn _PG_init() {
    // SAFETY: a plain flag of this process, set by PostgreSQL before it calls us.
    if !unsafe { pg_sys::process_shared_preload_libraries_in_progress } {
        return;
    }
    // Stage 1, identity: read from the text of the configuration, before PostgreSQL can replace an invalid value by a default.
    identity::establish();
    // Stage 2, settings.
    guc::define();
    // Stage 3, shared memory, and the background worker that creates the origin of the mark.
    shmem::request();
    stats::request();
    mark_worker::register();
    standby_watch::register();
    // Stage 4, hooks that run in each session.
    discard::after_discard(draw::forget);
}
