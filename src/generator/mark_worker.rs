//! The background worker that creates the replication origin, in which the mark is kept, and then exits.
//!
//! It runs after the server has become a primary, by a start or a promotion. It creates the origin in a transaction of its own,
//! because a user's transaction could be rolled back and leave progress behind, which the next subscription would inherit.

use std::time::Duration;

use pgrx::bgworkers::{BackgroundWorker, BackgroundWorkerBuilder};
use pgrx::{PgSqlErrorCode, PgTryBuilder, ereport, pg_guard, pg_sys, prelude::*};

use crate::config::identity;
use crate::faults::{self, Fault};
use crate::generator::{clock, log, mark, shmem, start};
use crate::message::error::Error;
use crate::pg::{background_worker, versions};

/// The time between an error and the next attempt.
const RETRY: Duration = Duration::from_secs(3);

/// Registers the background worker, if this server can issue IDs. Called in the postmaster while it preloads libraries. An error
/// keeps the server from starting.
pub fn register() {
    let identity = identity::get();
    if let Some(error) = identity.refusal() {
        return log::refusal(&error);
    }
    if faults::on(Fault::MarkMadeByUser) {
        return;
    }
    if versions::origins() == 0 {
        Error::NoOrigins { setting: versions::ORIGINS_SETTING }.raise();
    }
    let worker = BackgroundWorkerBuilder::new("snowflake_pg mark keeper")
        .set_library("snowflake_pg")
        .set_function("snowflake_pg_keep_mark")
        .enable_spi_access()
        .set_restart_time(Some(RETRY));
    if !background_worker::register(worker) {
        log::no_place();
    }
}

/// The background worker. An error ends it, and it is started again after [`RETRY`].
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
        PgTryBuilder::new(mark::make)
            .catch_when(PgSqlErrorCode::ERRCODE_CONFIGURATION_LIMIT_EXCEEDED, |error| {
                origin.note_no_free_state();
                error.rethrow()
            })
            .execute()
    });
    origin.note_made();
    match made {
        Ok(false) => {}
        Ok(true) => log::log(
            "made replication origin \"snowflake_pg\" to keep the high-water mark".into(),
            "Right at the first start. If this server has issued IDs before, the origin was dropped: IDs begin at \
             the clock, which must be ahead of the last ID."
                .into(),
        ),
        Err(_) => ereport!(
            PgLogLevel::WARNING,
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            "snowflake_pg: the high-water mark is missing",
            "Replication origin \"snowflake_pg\" has no progress."
        ),
    }
    announce();
}

/// Logs the identity of the server, and what keeps it from issuing IDs now or soon.
fn announce() {
    let identity = identity::get();
    let Ok(mark) = BackgroundWorker::transaction(mark::read) else {
        return;
    };
    let now = clock::wall();
    log::server(identity, mark, shmem::origin_state().startup, now);
    match start::beginning(identity, mark, now) {
        Ok(_) => log::end_of_layout(identity, now),
        Err(error) => log::refusal(&error),
    }
}
