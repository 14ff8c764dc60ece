//! The background worker that checks, on a standby, whether the standby and its primary have the same worker ID.
//! Nothing else reveals this problem before a failover.
//!
//! The worker exits when it has the answer or when the server is promoted. If a server starts as a standby and is
//! promoted without a primary, as happens with Patroni after a crash, the worker does not log a warning.

use std::time::Duration;

use pgrx::bgworkers::{BackgroundWorker, BackgroundWorkerBuilder, BgWorkerStartTime};
use pgrx::{pg_guard, pg_sys};

use crate::config::identity;
use crate::generator::mark_storage;
use crate::message::worker_id;
use crate::pg::startup::Startup;
use crate::pg::{background_worker, recovery, versions};
use crate::server::shmem;

/// The time between an error and the next attempt.
const RETRY: Duration = Duration::from_secs(10);

/// The time between two checks of whether the server is streaming and which server wrote the mark.
const LOOK: Duration = Duration::from_secs(1);

/// Registers the background worker if the server starts as a standby. The postmaster calls this function while it
/// preloads libraries. A standby that does not accept connections (`hot_standby = off`) never starts the worker.
pub fn register() {
    if !identity::get().worker_set || !matches!(Startup::now(), Startup::Standby { .. }) {
        return;
    }
    BackgroundWorkerBuilder::new("snowflake_pg standby watch")
        .set_library("snowflake_pg")
        .set_function("snowflake_pg_watch_primary")
        .enable_spi_access()
        .set_start_time(BgWorkerStartTime::ConsistentState)
        .set_restart_time(Some(RETRY))
        .load();
}

/// Runs the background worker.
#[allow(unsafe_code)]
#[pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn snowflake_pg_watch_primary(_argument: pg_sys::Datum) {
    versions::end_on_sigterm();
    background_worker::connect(&shmem::origin_state().unconnected);
    let identity = identity::get();
    while recovery::in_recovery() {
        // The mark does not show which server wrote it until the first ID has been issued.
        let streams = recovery::streams();
        let mark = streams.then(|| BackgroundWorker::transaction(mark_storage::read)).and_then(Result::ok);
        if let Some(node) = mark.and_then(|mark| identity.issuer(mark)) {
            if node == identity.node {
                worker_id::same_as_primary(&identity.name(identity.node));
            }
            return;
        }
        if !BackgroundWorker::wait_latch(Some(LOOK)) {
            return;
        }
    }
}
