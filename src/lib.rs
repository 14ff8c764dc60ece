//! Snowflake IDs as PostgreSQL primary keys: `id bigint PRIMARY KEY DEFAULT snowflake_nextval()`.
//!
//! This crate contains everything that depends on PostgreSQL. The crate `crates/flake` determines which ID comes next
//! and what the bits of an ID mean.

use pgrx::prelude::*;

mod config;
mod faults;
mod fleet;
mod functions;
mod generator;
mod message;
mod os;
mod pg;
mod segments;
mod server;
mod workers;

use config::guc_hooks::Callbacks;
use config::{guc, identity};
use fleet::{grant, record};
use functions::series_rights;
use generator::{current, witness};
use os::backtrace;
use pg::{security_label, utility};
use segments::slots;
use server::{log, shmem, stats};
use workers::{mark_worker, registrar, standby_watch};

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
    requires = [
        status::snowflake_status,
        status::snowflake_last_issuer,
        registry_status::snowflake_registry_status,
        guard::snowflake_guard_status,
        status::snowflake_stat_backends,
        segment::snowflake_segments
    ]
);
pgrx::extension_sql_file!(
    "../sql/copy.sql",
    name = "copy",
    requires = [copy::snowflake_copy_support, issue::snowflake_nextval, segment::snowflake_segment_nextval]
);
pgrx::extension_sql_file!("../sql/series.sql", name = "series", requires = [series::snowflake_series]);
pgrx::extension_sql_file!(
    "../sql/grants.sql",
    name = "grants",
    requires =
        [accept_clock::snowflake_accept_clock, set_mark::snowflake_set_mark, status::snowflake_stat_reset, "status"]
);
// The `requires` clause determines the position of this file in the extension script.
pgrx::extension_sql_file!("../sql/preload.sql", name = "preload", requires = ["grants"]);
pgrx::extension_sql_file!("../sql/comments.sql", name = "comments", finalize);

/// Initializes the library. PostgreSQL calls this function once in the postmaster. If the library is not preloaded,
/// PostgreSQL instead calls it in each session that calls one of the library's functions. Such a session can neither
/// request shared memory nor define settings that only the postmaster can set, so this function then sets up nothing.
/// Functions that need the shared memory or the settings raise an error
/// ([`message::preload::NotPreloaded`]).
#[allow(unsafe_code)]
#[pg_guard]
pub extern "C-unwind" fn _PG_init() {
    backtrace::disable();
    security_label::provide(series_rights::check_label);
    // SAFETY: the flag is a plain variable of this process, which PostgreSQL sets before it calls this function.
    if !unsafe { pg_sys::process_shared_preload_libraries_in_progress } {
        return;
    }
    // Stage 1: Read the identity from the text of the configuration, before PostgreSQL can replace an invalid value
    // with a default.
    identity::establish();
    // Stage 2: Define the settings.
    guc::define(Callbacks { assigned: grant::worker, registry_given: log::registry_given });
    // Stage 3: Open the witness, request shared memory, and register the background workers.
    witness::open(identity::get());
    record::open(identity::get());
    shmem::request();
    stats::request();
    grant::request(identity::get());
    slots::request(identity::get());
    registrar::register();
    mark_worker::register();
    standby_watch::register();
    // Stage 4: Install the hooks that run in each session.
    if !faults::on(faults::Fault::DiscardIgnored) {
        utility::observe(current::forget);
    }
}
