//! Background workers: registers them and detects that no slot is available, connects them to a database, handles their
//! signals, and provides waits that end when a signal arrives.
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

/// The databases to which a background worker can connect. All databases share the replication origins, but a process
/// can open the index of the origins only while it is connected to a database. These databases exist unless they were
/// dropped. template0 comes first because no session uses it.
const DATABASES: [&CStr; 3] = [c"template0", c"template1", c"postgres"];

/// How long a background worker waits for a lock, in PostgreSQL's notation. The wait is limited because CREATE DATABASE
/// cannot copy template0 while the worker is connected to it.
const LOCK_TIMEOUT: &CStr = c"2s";

/// True if no slot was available for a background worker. The postmaster sets this flag, and its children inherit it.
static TURNED_AWAY: AtomicBool = AtomicBool::new(false);

/// True if this background worker must exit but may still wait for operations that it has started.
static PARTING: AtomicBool = AtomicBool::new(false);

/// The hook that was installed before [`look`].
static PREVIOUS: OnceLock<pg_sys::emit_log_hook_type> = OnceLock::new();

/// Registers a background worker. Returns false if `max_worker_processes` leaves no slot for the worker. The postmaster
/// calls this function while it preloads libraries.
///
/// If no slot is available, PostgreSQL does not report an error to the caller. It only logs a message that does not
/// name the worker. This function detects that message.
pub fn register(worker: BackgroundWorkerBuilder) -> bool {
    // SAFETY: the hook is a variable of this process, which is single-threaded. The hook is installed only while
    // PostgreSQL registers the worker. (PostgreSQL does not call the hook if log_min_messages is FATAL or higher. In
    // that case, the first session waits for the worker until the wait times out.)
    unsafe {
        let previous = *PREVIOUS.get_or_init(|| pg_sys::emit_log_hook);
        pg_sys::emit_log_hook = Some(look);
        worker.load();
        pg_sys::emit_log_hook = previous;
    }
    !was_turned_away()
}

/// Returns true if no slot was available for a background worker.
pub fn was_turned_away() -> bool {
    TURNED_AWAY.load(Ordering::Relaxed)
}

/// Detects the log message that reports too few slots. Passes every message on to the previous hook.
///
/// # Safety
///
/// PostgreSQL calls this function with the message that it is about to log.
unsafe extern "C-unwind" fn look(line: *mut pg_sys::ErrorData) {
    // SAFETY: the caller guarantees that `line` is a valid pointer.
    if unsafe { (*line).sqlerrcode } == PgSqlErrorCode::ERRCODE_CONFIGURATION_LIMIT_EXCEEDED as i32 {
        TURNED_AWAY.store(true, Ordering::Relaxed);
    }
    if let Some(previous) = PREVIOUS.get().copied().flatten() {
        // SAFETY: the message is passed on unchanged.
        unsafe { previous(line) };
    }
}

/// Connects a background worker to a database. Each process calls this function only once. `unconnected` counts the
/// attempts that have not succeeded so far.
pub fn connect(unconnected: &AtomicU32) {
    // If the database does not exist, this process exits, and the next process tries a different database.
    let database = DATABASES[unconnected.fetch_add(1, Ordering::Relaxed) as usize % DATABASES.len()];
    let (database, flags) = (database.as_ptr(), pg_sys::BGWORKER_BYPASS_ALLOWCONN);
    // SAFETY: the arguments are C strings, and this is the first call of its kind in this process.
    unsafe { pg_sys::BackgroundWorkerInitializeConnection(database, std::ptr::null(), flags) };
    unconnected.fetch_sub(1, Ordering::Relaxed);
    // COMMIT must not wait for a standby, which may not be connected while the server is starting.
    setting::set(c"synchronous_commit", c"local");
    setting::set(c"lock_timeout", if faults::on(Fault::DeafWorker) { c"0" } else { LOCK_TIMEOUT });
}

/// Returns true if the server was started by `pg_upgrade`, which copies the data.
pub fn in_pg_upgrade() -> bool {
    // SAFETY: this is a plain flag of the server, which is set when the server starts.
    unsafe { pg_sys::IsBinaryUpgrade }
}

/// Returns true if the server can run background workers. It cannot run them in single-user mode or while `pg_upgrade`
/// copies the data.
pub fn in_normal_server() -> bool {
    // SAFETY: this is a plain flag of the server, which is set before it preloads libraries.
    !in_pg_upgrade() && unsafe { pg_sys::IsPostmasterEnvironment }
}

/// Installs signal handlers that set this background worker's latch when it is requested to exit or to reload its
/// configuration.
pub fn heed_signals() {
    BackgroundWorker::attach_signal_handlers(SignalWakeFlags::SIGTERM | SignalWakeFlags::SIGHUP);
}

/// Returns true if this background worker must exit.
pub fn ending() -> bool {
    // SAFETY: the flag is a variable of this process that only its signal handler writes.
    unsafe { (&raw const pg_sys::ShutdownRequestPending).read_volatile() != 0 }
}

/// Returns true if this background worker must exit or reload its configuration.
pub fn interrupted() -> bool {
    // SAFETY: the flag is a variable of this process that its signal handler writes.
    let reload = || unsafe { (&raw const pg_sys::ConfigReloadPending).read_volatile() != 0 };
    !PARTING.load(Ordering::Relaxed) && (ending() || reload())
}

/// Lets the waits of this background worker continue until their deadlines, even though the worker must exit.
pub fn part() {
    PARTING.store(true, Ordering::Relaxed);
}

/// Why [`wait_on_socket`] stopped waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    Ready,
    Late,
    Interrupted,
}

/// Waits until the socket is ready, the deadline has passed, or this background worker must exit or reload its
/// configuration.
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

/// Reloads the configuration if this was requested. Returns true if it was.
pub fn reload() -> bool {
    // SAFETY: the flag is a variable of this process. It is cleared first, so that a request that arrives during the
    // reload is not lost. The process is not in a transaction, which is also true of PostgreSQL's own background
    // processes when they reload the configuration.
    unsafe {
        let requested = (&raw const pg_sys::ConfigReloadPending).read_volatile() != 0;
        if requested {
            (&raw mut pg_sys::ConfigReloadPending).write_volatile(0);
            pg_sys::ProcessConfigFile(pg_sys::GucContext::PGC_SIGHUP);
        }
        requested
    }
}

/// Exits this background worker. PostgreSQL restarts it unless the server is shutting down.
pub fn end() -> ! {
    // SAFETY: the process holds no locks. The end of the process frees the values that the callers still own.
    unsafe { pg_sys::proc_exit(1) };
    // Only the declarations before PostgreSQL 18 state that the function never returns.
    #[allow(unreachable_code)]
    {
        unreachable!("proc_exit() does not return")
    }
}
