//! The one-shot background worker that sees to it that the mark has a place to be kept.
//!
//! It runs when the server has come up as a primary: after a start or a promotion. It makes the replication origin
//! in a transaction of its own, for a user's could be rolled back, and leave progress behind that the next subscription
//! would inherit.

use std::ffi::CStr;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use pgrx::bgworkers::{BackgroundWorker, BackgroundWorkerBuilder, SignalWakeFlags};
use pgrx::{PgSqlErrorCode, PgTryBuilder, ereport, pg_guard, pg_sys, prelude::*};

use crate::failure::{Failure, MarkProblem};
use crate::faults::{self, Fault};
use crate::{announce, clock, identity, load, major, mark, shmem};

/// What the background worker has come to, for sessions that find no origin.
pub struct Outcome {
    state: AtomicU32,
    /// True where the server began as a standby.
    was_standby: bool,
}

impl Outcome {
    /// Before it has run. In the postmaster, whose directory is the data directory; again when it sets up shared memory anew.
    pub fn new() -> Outcome {
        let was_standby = pg_sys::STANDBY_SIGNAL_FILE.to_str().is_ok_and(|name| Path::new(name).exists());
        Outcome { state: AtomicU32::new(NOT_RUN), was_standby }
    }
}

/// Origins are shared by all databases, but without one their index cannot be opened. This one is in every server.
const DATABASE: &CStr = c"template0";

const NOT_RUN: u32 = 0;
const MADE: u32 = 1;
const NO_FREE_STATE: u32 = 2;

/// How long after a failure it tries again.
const RETRY: Duration = Duration::from_secs(60);

/// Registers the background worker, where this server can issue at all. In the postmaster, while it preloads libraries; an
/// error ends the server's start.
pub fn register() {
    let identity = identity::get();
    if !identity.worker_set {
        return announce::refusal(&Failure::WorkerUnset { layout: identity.scheme.layout });
    }
    if faults::on(Fault::MarkMadeByUser) {
        return;
    }
    if major::origins() == 0 {
        Failure::NoOrigins { setting: major::ORIGINS_SETTING }.raise();
    }
    BackgroundWorkerBuilder::new("snowflake_pg mark keeper")
        .set_library("snowflake_pg")
        .set_function("snowflake_pg_keep_mark")
        .enable_spi_access()
        .set_restart_time(Some(RETRY))
        .load();
}

/// Why there is no origin.
pub fn problem() -> MarkProblem {
    match shmem::keeper().state.load(Ordering::Relaxed) {
        NOT_RUN => MarkProblem::NotMade,
        NO_FREE_STATE => MarkProblem::NoFreeState,
        _ => MarkProblem::Dropped,
    }
}

/// Notes that the origin is there: a crash has made the server forget that the background worker has run.
pub fn origin_seen() {
    shmem::keeper().state.store(MADE, Ordering::Relaxed);
}

/// The background worker. An error ends it, and it is started again after [`RETRY`].
#[allow(unsafe_code)]
#[pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn snowflake_pg_keep_mark(_argument: pg_sys::Datum) {
    BackgroundWorker::attach_signal_handlers(SignalWakeFlags::SIGTERM);
    // SAFETY: a plain flag of the server, set at its start.
    if unsafe { pg_sys::IsBinaryUpgrade } {
        return;
    }
    // SAFETY: C strings; the first call of its kind in this process. The commit must not wait for a standby, which may be
    // missing while the server comes up.
    unsafe {
        pg_sys::BackgroundWorkerInitializeConnection(
            DATABASE.as_ptr(),
            std::ptr::null(),
            pg_sys::BGWORKER_BYPASS_ALLOWCONN,
        );
        pg_sys::SetConfigOption(
            c"synchronous_commit".as_ptr(),
            c"local".as_ptr(),
            pg_sys::GucContext::PGC_USERSET,
            pg_sys::GucSource::PGC_S_SESSION,
        );
    }
    let outcome = &shmem::keeper().state;
    let made = BackgroundWorker::transaction(|| {
        PgTryBuilder::new(mark::make)
            .catch_when(PgSqlErrorCode::ERRCODE_CONFIGURATION_LIMIT_EXCEEDED, |error| {
                outcome.store(NO_FREE_STATE, Ordering::Relaxed);
                error.rethrow()
            })
            .execute()
    });
    origin_seen();
    match made {
        Ok(false) => {}
        Ok(true) => ereport!(
            PgLogLevel::LOG,
            PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
            "snowflake_pg: made replication origin \"snowflake_pg\" to keep the high-water mark",
            "Right at the first start. If this server has issued IDs before, the origin was dropped: IDs begin at the clock, which must be ahead of the last ID."
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

/// Tells the log who has come up, and what will keep it from issuing, or will before long.
fn announce() {
    let identity = identity::get();
    let Ok(mark) = BackgroundWorker::transaction(mark::read) else {
        return;
    };
    announce::server(identity, mark, shmem::keeper().was_standby);
    let now = clock::wall();
    match load::beginning(identity, mark, now) {
        Ok(_) => announce::end_of_layout(identity, now),
        Err(failure) => announce::refusal(&failure),
    }
}
