//! The differences between PostgreSQL versions. A version that is not named in this file is treated like the newest
//! version.
//!
//! # PostgreSQL 19
//!
//! pgrx supports PostgreSQL 19 (feature `pg19`) in version 0.19 and later, which need Rust 1.96. The following changes
//! in PostgreSQL 19 affect this library:
//!
//! - `RepOriginId` is called `ReplOriginId` (commit 1fdbca159e). It is [`OriginId`] here, and the code of no other file
//!   uses the name.
//! - Signal handlers have a second parameter, which is a `const pg_signal_info *` (commit c644aca240). The declaration of
//!   `die` needs this parameter.
//! - `ShmemRequestStruct` is the new way to request shared memory (commit 283e823f9). According to the release notes,
//!   `ShmemInitStruct`, which [`crate::pg::backend_slots`] and pgrx call, is still supported.
//!
//! Before the first release for PostgreSQL 19, check the assumptions that the compiler cannot check: [`SYNC_REP_LOCK`],
//! the flags in [`standby_configured`], and the locks that `replorigin_advance` holds when it raises an error, which
//! [`crate::pg::replication_origin`] releases.
#![allow(unsafe_code)]

use pgrx::pg_sys;

use crate::faults::{self, Fault};
use crate::pg::setting;
use crate::pg::wait_event::WaitEvent;

/// Returns the wait event that `pg_stat_activity` shows for a waiting session. Before PostgreSQL 17, all extensions
/// share one wait event.
#[cfg(any(feature = "pg15", feature = "pg16"))]
pub fn wait_event(_: WaitEvent) -> u32 {
    pg_sys::PG_WAIT_EXTENSION
}

/// Returns the wait event that `pg_stat_activity` shows for a waiting session. In PostgreSQL 17 and later, extensions
/// define their own wait events.
#[cfg(not(any(feature = "pg15", feature = "pg16")))]
pub fn wait_event(what: WaitEvent) -> u32 {
    use std::sync::OnceLock;
    static EVENTS: [OnceLock<u32>; WaitEvent::ALL.len()] = [const { OnceLock::new() }; WaitEvent::ALL.len()];
    // SAFETY: PostgreSQL copies the C string. The call is made in a backend that holds no locks.
    *EVENTS[what as usize].get_or_init(|| unsafe { pg_sys::WaitEventExtensionNew(what.wait_event_name().as_ptr()) })
}

/// Makes SIGTERM terminate this background worker in the same way as it terminates a session. The worker exits at the
/// next check for interrupts, for example while it waits for a lock.
pub fn end_on_sigterm() {
    unsafe extern "C-unwind" {
        fn die(signal: std::ffi::c_int);
    }
    if faults::on(Fault::DeafWorker) {
        return pgrx::bgworkers::BackgroundWorker::attach_signal_handlers(pgrx::bgworkers::SignalWakeFlags::SIGTERM);
    }
    // SAFETY: the handler is PostgreSQL's own. It is installed before signals are unblocked, as in PostgreSQL's
    // background workers.
    unsafe {
        #[cfg(any(feature = "pg15", feature = "pg16", feature = "pg17"))]
        pg_sys::pqsignal(libc::SIGTERM, Some(die));
        #[cfg(not(any(feature = "pg15", feature = "pg16", feature = "pg17")))]
        pg_sys::pqsignal_be(libc::SIGTERM, Some(die));
        pg_sys::BackgroundWorkerUnblockSignals();
    }
}

/// Returns the number of this backend, or `None` if this process is not a backend. The number is below `MaxBackends`,
/// and no two backends have the same number at the same time. Before PostgreSQL 17, the number comes from the shared
/// invalidation queue, where numbers start at 1.
#[cfg(any(feature = "pg15", feature = "pg16"))]
pub fn backend_number() -> Option<usize> {
    // SAFETY: this is a plain variable of this process.
    usize::try_from(unsafe { pg_sys::MyBackendId }).ok()?.checked_sub(1)
}

/// Returns the number of this backend, or `None` if this process is not a backend. The number is below `MaxBackends`,
/// and no two backends have the same number at the same time.
#[cfg(not(any(feature = "pg15", feature = "pg16")))]
pub fn backend_number() -> Option<usize> {
    // SAFETY: this is a plain variable of this process.
    usize::try_from(unsafe { pg_sys::MyProcNumber }).ok()
}

pub type OriginId = pg_sys::RepOriginId;

/// The setting that limits how many replication origins can have progress. Before PostgreSQL 18, it also limits the
/// number of replication slots.
pub const ORIGINS_SETTING: &str = if cfg!(any(feature = "pg15", feature = "pg16", feature = "pg17")) {
    "max_replication_slots"
} else {
    "max_active_replication_origins"
};

/// Returns the value of [`ORIGINS_SETTING`].
#[cfg(any(feature = "pg15", feature = "pg16", feature = "pg17"))]
pub fn origins() -> i32 {
    // SAFETY: this setting can change only when the server starts.
    unsafe { pg_sys::max_replication_slots }
}

/// Returns the value of [`ORIGINS_SETTING`].
#[cfg(not(any(feature = "pg15", feature = "pg16", feature = "pg17")))]
pub fn origins() -> i32 {
    // SAFETY: this setting can change only when the server starts.
    unsafe { pg_sys::max_active_replication_origins }
}

/// The number of `SyncRepLock` among the main locks. It is 32 in all supported versions, because PostgreSQL does not
/// reuse the numbers of removed locks. The number is defined in `lwlocknames.txt`, or in `lwlocklist.h` in PostgreSQL
/// 17 and later.
pub const SYNC_REP_LOCK: usize = 32;

/// Returns true if a synchronous standby is configured, according to the flags in shared memory and to
/// `synchronous_standby_names` in this process.
///
/// In the minor releases of May 2025 (15.13, 16.9, 17.5) and later, the flags are INIT and DEFINED. INIT is set once
/// the checkpointer has run. Earlier releases have a single flag, which is true if a synchronous standby is configured.
pub fn standby_configured(flags: u8, names_given: bool) -> bool {
    let flag = |bit: u32| u32::from(flags) & bit != 0;
    if server_version() < FLAGS_SINCE {
        flags != 0
    } else if flag(pg_sys::SYNC_STANDBY_INIT) {
        flag(pg_sys::SYNC_STANDBY_DEFINED)
    } else {
        names_given
    }
}

/// The first version that has both flags.
const FLAGS_SINCE: u32 = if cfg!(feature = "pg15") {
    150_013
} else if cfg!(feature = "pg16") {
    160_009
} else if cfg!(feature = "pg17") {
    170_005
} else {
    180_000
};

/// Returns the version of the running server, which can be an older minor release than the one for which this library
/// was built.
fn server_version() -> u32 {
    setting::configured(c"server_version_num").and_then(|text| text.parse().ok()).unwrap_or(pg_sys::PG_VERSION_NUM)
}

/// Returns true if the current user owns a relation or is a member of the role that owns it.
#[cfg(feature = "pg15")]
pub fn owns(relation: pg_sys::Oid) -> bool {
    // SAFETY: the functions read the catalog caches in a transaction.
    unsafe { pg_sys::pg_class_ownercheck(relation, pg_sys::GetUserId()) }
}

/// Returns true if the current user owns a relation or is a member of the role that owns it.
#[cfg(not(feature = "pg15"))]
pub fn owns(relation: pg_sys::Oid) -> bool {
    // SAFETY: the functions read the catalog caches in a transaction.
    unsafe { pg_sys::object_ownercheck(pg_sys::RelationRelationId, relation, pg_sys::GetUserId()) }
}

/// Converts a privilege to the type of this version, which has 64 bits in PostgreSQL 16 and later.
pub const fn acl(privilege: u32) -> pg_sys::AclMode {
    privilege as pg_sys::AclMode
}

/// Returns true if a role may call a function.
#[cfg(feature = "pg15")]
pub fn may_call(function: pg_sys::Oid, role: pg_sys::Oid) -> bool {
    // SAFETY: the function reads the catalog caches in a transaction.
    unsafe { pg_sys::pg_proc_aclcheck(function, role, pg_sys::ACL_EXECUTE) == pg_sys::AclResult::ACLCHECK_OK }
}

/// Returns true if a role may call a function.
#[cfg(not(feature = "pg15"))]
pub fn may_call(function: pg_sys::Oid, role: pg_sys::Oid) -> bool {
    let (catalog, right) = (pg_sys::ProcedureRelationId, acl(pg_sys::ACL_EXECUTE));
    // SAFETY: the function reads the catalog caches in a transaction.
    unsafe { pg_sys::object_aclcheck(catalog, function, role, right) == pg_sys::AclResult::ACLCHECK_OK }
}
