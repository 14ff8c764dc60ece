//! Background workers: their registration, which fails if no slot is free, and their connection to a database.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use pgrx::bgworkers::BackgroundWorkerBuilder;
use pgrx::{PgSqlErrorCode, pg_sys};

use crate::faults::{self, Fault};
use crate::pg::setting;

/// The databases to which a background worker can connect. All databases share the replication origins, but a process can open the
/// index of the origins only while it is connected to a database. These databases exist unless they were dropped. template0 comes
/// first because no session uses it.
const DATABASES: [&CStr; 3] = [c"template0", c"template1", c"postgres"];

/// How long a background worker waits for a lock, in PostgreSQL's notation. The wait is limited because template0
/// cannot be copied while the worker is connected to it.
const LOCK_TIMEOUT: &CStr = c"2s";

/// True if there was no slot for a background worker. The postmaster sets this flag, and its children inherit it.
static TURNED_AWAY: AtomicBool = AtomicBool::new(false);

/// The hook that was set before [`look`].
static PREVIOUS: OnceLock<pg_sys::emit_log_hook_type> = OnceLock::new();

/// Registers a background worker. Returns false if `max_worker_processes` leaves no slot for the worker. This function is called
/// in the postmaster while it preloads libraries.
///
/// If there is no slot, PostgreSQL logs a line that does not name the worker, and reports no error to the caller. This
/// function detects that line.
pub fn register(worker: BackgroundWorkerBuilder) -> bool {
    // SAFETY: the hook is a variable of this process, which has one thread. The hook is set only while PostgreSQL registers the
    // worker. (PostgreSQL does not call the hook if log_min_messages is FATAL or higher. In that case, the first session waits for
    // the worker until the session gives up.)
    unsafe {
        let previous = *PREVIOUS.get_or_init(|| pg_sys::emit_log_hook);
        pg_sys::emit_log_hook = Some(look);
        worker.load();
        pg_sys::emit_log_hook = previous;
    }
    !was_turned_away()
}

/// Returns true if there was no slot for a background worker.
pub fn was_turned_away() -> bool {
    TURNED_AWAY.load(Ordering::Relaxed)
}

/// Detects the log line about too few slots, and passes every line on to the previous hook.
///
/// # Safety
///
/// PostgreSQL calls this function with the line that PostgreSQL is about to write.
unsafe extern "C-unwind" fn look(line: *mut pg_sys::ErrorData) {
    // SAFETY: the caller guarantees that `line` is a valid pointer.
    if unsafe { (*line).sqlerrcode } == PgSqlErrorCode::ERRCODE_CONFIGURATION_LIMIT_EXCEEDED as i32 {
        TURNED_AWAY.store(true, Ordering::Relaxed);
    }
    if let Some(previous) = PREVIOUS.get().copied().flatten() {
        // SAFETY: the line is passed on unchanged.
        unsafe { previous(line) };
    }
}

/// Connects a background worker to a database. This function is called once per process. `unconnected` counts the attempts that
/// have not succeeded so far.
pub fn connect(unconnected: &AtomicU32) {
    // If the database does not exist, this process exits, and the next one tries another database.
    let database = DATABASES[unconnected.fetch_add(1, Ordering::Relaxed) as usize % DATABASES.len()];
    // SAFETY: the arguments are C strings, and this is the first call of its kind in this process.
    unsafe {
        pg_sys::BackgroundWorkerInitializeConnection(
            database.as_ptr(),
            std::ptr::null(),
            pg_sys::BGWORKER_BYPASS_ALLOWCONN,
        );
    }
    unconnected.fetch_sub(1, Ordering::Relaxed);
    // The commit must not wait for a standby, which may not be connected while the server starts.
    setting::set(c"synchronous_commit", c"local");
    setting::set(c"lock_timeout", if faults::on(Fault::DeafWorker) { c"0" } else { LOCK_TIMEOUT });
}

/// Returns true if the server runs for `pg_upgrade`, which copies the data.
pub fn in_pg_upgrade() -> bool {
    // SAFETY: this is a plain flag of the server, which is set when the server starts.
    unsafe { pg_sys::IsBinaryUpgrade }
}
