//! Properties of the current transaction.
#![allow(unsafe_code)]

use pgrx::pg_sys;

/// Returns true if the transaction uses one snapshot until its end. In that case, its later statements do not see what
/// other sessions commit in the meantime.
pub fn keeps_snapshot() -> bool {
    // SAFETY: this is a plain variable of this process.
    unsafe { pg_sys::XactIsoLevel >= pg_sys::XACT_REPEATABLE_READ as i32 }
}

/// Returns true if the transaction has written anything.
pub fn has_written() -> bool {
    // SAFETY: the call reads a variable of this process.
    unsafe { pg_sys::GetTopTransactionIdIfAny().into_inner() != 0 }
}
