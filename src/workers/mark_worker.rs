//! The background worker that creates the replication origin in which the mark is stored. It then exits.
//!
//! It runs after the server has become a primary, either at a server start or through a promotion. It creates the
//! origin in its own transaction. If a user's transaction created the origin and was rolled back, the progress would
//! remain, and the next subscription would inherit it.

use std::time::Duration;

use pgrx::bgworkers::{BackgroundWorker, BackgroundWorkerBuilder};
use pgrx::{PgSqlErrorCode, PgTryBuilder, pg_guard, pg_sys};

use crate::config::identity;
use crate::faults::{self, Fault};
use crate::fleet::grant;
use crate::generator::{mark_storage, start};
use crate::message::mark::MarkProblem;
use crate::message::{self, issue};
use crate::pg::{background_worker, versions};
use crate::server::{clock, log, shmem};

/// The time between an error and the next attempt.
const RETRY: Duration = Duration::from_secs(3);

/// Registers the background worker if this server can issue IDs. The postmaster calls this function while it preloads
/// libraries. An error keeps the server from starting.
pub fn register() {
    let identity = identity::get();
    if let Some(error) = identity.refusal() {
        return issue::refused(error.report());
    }
    if faults::on(Fault::MarkMadeByUser) {
        return;
    }
    if versions::origins() == 0 {
        MarkProblem::NoOrigins.raise();
    }
    let worker = BackgroundWorkerBuilder::new("snowflake_pg mark worker")
        .set_library("snowflake_pg")
        .set_function("snowflake_pg_keep_mark")
        .enable_spi_access()
        .set_restart_time(Some(RETRY));
    if !background_worker::register(worker) {
        MarkProblem::NoPlace.report().warn("");
    }
}

/// Runs the background worker. If an error ends it, PostgreSQL restarts it after [`RETRY`].
#[allow(unsafe_code)]
#[pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn snowflake_pg_keep_mark(_argument: pg_sys::Datum) {
    versions::end_on_sigterm();
    if background_worker::in_pg_upgrade() {
        return;
    }
    let origin = shmem::origin_state();
    background_worker::connect(&origin.unconnected);
    let made = BackgroundWorker::transaction(|| {
        PgTryBuilder::new(mark_storage::make)
            .catch_when(PgSqlErrorCode::ERRCODE_CONFIGURATION_LIMIT_EXCEEDED, |error| {
                origin.note_no_free_state();
                error.rethrow()
            })
            .execute()
    });
    origin.note_made();
    match made {
        Ok(false) => {}
        Ok(true) => message::mark::origin_created(),
        Err(problem) => problem.report().warn(""),
    }
    announce();
}

/// Logs the server's identity. If the server cannot issue IDs, or will soon be unable to issue IDs, also logs the
/// reason.
fn announce() {
    let Some(identity) = &grant::identity() else { return };
    let Ok(mark) = BackgroundWorker::transaction(mark_storage::read) else { return };
    let now = clock::wall();
    log::server(identity, mark, shmem::origin_state().startup, now);
    // The registrar itself logs that there is no worker ID.
    if !identity.worker_set {
        return log::end_of_layout(identity, now);
    }
    match start::beginning(identity, mark, now) {
        Ok(_) => log::end_of_layout(identity, now),
        Err(error) => issue::refused(error.report()),
    }
}
