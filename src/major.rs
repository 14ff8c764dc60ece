//! What differs between the versions of PostgreSQL.

use std::ffi::CStr;

use pgrx::pg_sys;

use crate::wait::Wait;

/// The wait event `pg_stat_activity` shows for a session that waits. Before 17 an extension has only the general one.
#[cfg(any(feature = "pg15", feature = "pg16"))]
pub fn wait_event(_: Wait) -> u32 {
    pg_sys::PG_WAIT_EXTENSION
}

/// The wait event `pg_stat_activity` shows for a session that waits. From 17 on extensions name their own.
#[cfg(any(feature = "pg17", feature = "pg18"))]
#[allow(unsafe_code)]
pub fn wait_event(what: Wait) -> u32 {
    use std::sync::OnceLock;
    static EVENTS: [OnceLock<u32>; 3] = [const { OnceLock::new() }; 3];
    let (event, name) = match what {
        Wait::Throttled => (&EVENTS[0], c"SnowflakeThrottled"),
        Wait::Mark => (&EVENTS[1], c"SnowflakeMark"),
        Wait::Clock => (&EVENTS[2], c"SnowflakeClock"),
    };
    // SAFETY: a C string that PostgreSQL copies; the call is made in a backend, outside of any lock.
    *event.get_or_init(|| unsafe { pg_sys::WaitEventExtensionNew(name.as_ptr()) })
}

/// This backend's number, below `MaxBackends`, which no other has while it lives; `None` in a process that is no backend.
/// Before 17 it is the one of the shared invalidation queue, from 1 on.
#[cfg(any(feature = "pg15", feature = "pg16"))]
#[allow(unsafe_code)]
pub fn backend_number() -> Option<usize> {
    // SAFETY: a plain variable of this process.
    usize::try_from(unsafe { pg_sys::MyBackendId }).ok()?.checked_sub(1)
}

/// This backend's number, below `MaxBackends`, which no other has while it lives; `None` in a process that is no backend.
#[cfg(any(feature = "pg17", feature = "pg18"))]
#[allow(unsafe_code)]
pub fn backend_number() -> Option<usize> {
    // SAFETY: a plain variable of this process.
    usize::try_from(unsafe { pg_sys::MyProcNumber }).ok()
}

/// The setting that limits how many replication origins can have progress. Before 18 that of the slots counts for both.
#[cfg(not(feature = "pg18"))]
pub const ORIGINS_SETTING: &str = "max_replication_slots";

/// The setting that limits how many replication origins can have progress.
#[cfg(feature = "pg18")]
pub const ORIGINS_SETTING: &str = "max_active_replication_origins";

/// Its value.
#[cfg(not(feature = "pg18"))]
#[allow(unsafe_code)]
pub fn origins() -> i32 {
    // SAFETY: a setting that only the start of the server changes.
    unsafe { pg_sys::max_replication_slots }
}

/// Its value.
#[cfg(feature = "pg18")]
#[allow(unsafe_code)]
pub fn origins() -> i32 {
    // SAFETY: a setting that only the start of the server changes.
    unsafe { pg_sys::max_active_replication_origins }
}

/// The number of `SyncRepLock` among the main locks: 32 in `lwlocknames.txt` (from 17 `lwlocklist.h`) of all versions
/// supported, whose numbers keep their holes.
pub const SYNC_REP_LOCK: usize = 32;

/// True where a synchronous standby is configured, by the flags in shared memory and this process's own
/// `synchronous_standby_names`.
///
/// From the minor releases of May 2025 on (15.13, 16.9, 17.5) the flags are INIT and DEFINED, and INIT is missing only until
/// the checkpointer has run; before, there was one, true where a standby is configured.
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

/// The first version with both flags.
const FLAGS_SINCE: u32 = if cfg!(feature = "pg15") {
    150_013
} else if cfg!(feature = "pg16") {
    160_009
} else if cfg!(feature = "pg17") {
    170_005
} else {
    180_000
};

/// The version of the running server, which may be an older minor release than the one this library was built for.
#[allow(unsafe_code)]
fn server_version() -> u32 {
    // SAFETY: the setting exists in every version, so the pointer is a C string that stays valid.
    let text = unsafe { CStr::from_ptr(pg_sys::GetConfigOption(c"server_version_num".as_ptr(), false, false)) };
    text.to_str().ok().and_then(|text| text.parse().ok()).unwrap_or(pg_sys::PG_VERSION_NUM)
}
