//! Whether this server is in recovery, and follows a primary.
#![allow(unsafe_code)]

use pgrx::pg_sys;

/// True while the server is in recovery, as a standby is.
pub fn in_recovery() -> bool {
    // SAFETY: reads shared memory that every backend is attached to.
    unsafe { pg_sys::RecoveryInProgress() }
}

/// True while a standby receives the WAL of another server.
pub fn streams() -> bool {
    // SAFETY: reads shared memory that every backend is attached to.
    unsafe { pg_sys::WalRcvStreaming() && followed() }
}

/// True if this server has been connected to a primary since it started, even if it has been promoted since.
pub fn followed() -> bool {
    // SAFETY: in shared memory that every backend is attached to. Read without its lock: one number, which is zero until the
    // first connection.
    unsafe { !pg_sys::WalRcv.is_null() && (&raw const (*pg_sys::WalRcv).sender_port).read_volatile() != 0 }
}
