//! What differs between the major versions of PostgreSQL.

use pgrx::pg_sys;

/// The wait event `pg_stat_activity` shows for a throttled session. Before 17 an extension has only the general one.
#[cfg(any(feature = "pg15", feature = "pg16"))]
pub fn throttled_wait_event() -> u32 {
    pg_sys::PG_WAIT_EXTENSION
}

/// The wait event `pg_stat_activity` shows for a throttled session. From 17 on extensions name their own.
#[cfg(any(feature = "pg17", feature = "pg18"))]
#[allow(unsafe_code)]
pub fn throttled_wait_event() -> u32 {
    static EVENT: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    // SAFETY: a C string that PostgreSQL copies; the call is made in a backend, outside of any lock.
    *EVENT.get_or_init(|| unsafe { pg_sys::WaitEventExtensionNew(c"SnowflakeThrottled".as_ptr()) })
}
