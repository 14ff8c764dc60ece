//! The recovery state: whether this server is in recovery, and whether it follows a primary.
#![allow(unsafe_code)]

use pgrx::pg_sys;

/// Returns true while the server is in recovery, for example as a standby.
pub fn in_recovery() -> bool {
    // SAFETY: the call reads shared memory to which every backend is attached.
    unsafe { pg_sys::RecoveryInProgress() }
}

/// Returns true while a standby is receiving WAL from another server.
pub fn streams() -> bool {
    // SAFETY: the call reads shared memory to which every backend is attached.
    unsafe { pg_sys::WalRcvStreaming() && followed() }
}

/// Returns true if this server has been connected to a primary since it started, even if it has been promoted since
/// then.
pub fn followed() -> bool {
    // SAFETY: the number is in shared memory, to which every backend is attached. It can be read without its lock,
    // because it is a single number that is zero until the first connection.
    unsafe { !pg_sys::WalRcv.is_null() && (&raw const (*pg_sys::WalRcv).sender_port).read_volatile() != 0 }
}
