//! Background workers: their registration, which fails if no slot is free, their connection to a database, their signals, and their
//! waits, which end with a signal.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Instant;

use pgrx::bgworkers::{BackgroundWorker, BackgroundWorkerBuilder, SignalWakeFlags};
use pgrx::{PgSqlErrorCode, pg_sys};

use crate::faults::{self, Fault};
use crate::pg::latch::{self, Readiness};
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

/// True if this background worker must end, but may still wait for operations that it has begun.
static PARTING: AtomicBool = AtomicBool::new(false);

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

/// Returns true if background workers run beside this process: not in single-user mode, and not while `pg_upgrade` copies the data.
pub fn in_normal_server() -> bool {
    // SAFETY: this is a plain flag of the server, which is set before it preloads libraries.
    !in_pg_upgrade() && unsafe { pg_sys::IsPostmasterEnvironment }
}

/// Lets a request to end, and a request to read the configuration again, set the latch of this background worker.
pub fn heed_signals() {
    BackgroundWorker::attach_signal_handlers(SignalWakeFlags::SIGTERM | SignalWakeFlags::SIGHUP);
}

/// Returns true if this background worker must end.
pub fn ending() -> bool {
    // SAFETY: the flag is a variable of this process that only its signal handler writes.
    unsafe { (&raw const pg_sys::ShutdownRequestPending).read_volatile() != 0 }
}

/// Returns true if this background worker must end, or must read its configuration again.
pub fn interrupted() -> bool {
    // SAFETY: the flag is a variable of this process that its signal handler writes.
    let reload = || unsafe { (&raw const pg_sys::ConfigReloadPending).read_volatile() != 0 };
    !PARTING.load(Ordering::Relaxed) && (ending() || reload())
}

/// Lets the waits of this background worker, which must end, continue until their deadlines.
pub fn part() {
    PARTING.store(true, Ordering::Relaxed);
}

/// Why [`wait_on_socket`] has stopped waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    Ready,
    Late,
    Interrupted,
}

/// Waits until the socket is ready, the deadline has passed, or this background worker must end or read its configuration again.
pub fn wait_on_socket(socket: i32, readiness: Readiness, deadline: Instant) -> Wait {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if interrupted() {
            return Wait::Interrupted;
        } else if left.is_zero() {
            return Wait::Late;
        } else if latch::sleep_on_socket(socket, readiness, left) {
            return Wait::Ready;
        }
    }
}

/// Reads the configuration again if this was requested. Returns true if it was.
pub fn reload() -> bool {
    // SAFETY: the flag is a variable of this process. It is cleared first, so that a request during the reading is not lost. The
    // process is in no transaction, as PostgreSQL's own background processes when they read the configuration.
    unsafe {
        let requested = (&raw const pg_sys::ConfigReloadPending).read_volatile() != 0;
        if requested {
            (&raw mut pg_sys::ConfigReloadPending).write_volatile(0);
            pg_sys::ProcessConfigFile(pg_sys::GucContext::PGC_SIGHUP);
        }
        requested
    }
}

/// Ends this background worker. PostgreSQL starts it again unless the server stops.
pub fn end() -> ! {
    // SAFETY: the process holds no lock, and the callers have dropped what they own.
    unsafe { pg_sys::proc_exit(1) };
    // Only before PostgreSQL 18 does the declaration say so.
    #[allow(unreachable_code)]
    {
        unreachable!("proc_exit() does not return")
    }
}
