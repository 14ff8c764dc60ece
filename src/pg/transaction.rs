//! Properties of the current transaction.
#![allow(unsafe_code)]

use pgrx::pg_sys;

/// True if the transaction keeps one snapshot to its end, so that its later statements do not see what others commit meanwhile.
pub fn keeps_snapshot() -> bool {
    // SAFETY: a plain variable of this process.
    unsafe { pg_sys::XactIsoLevel >= pg_sys::XACT_REPEATABLE_READ as i32 }
}

/// True if the transaction has written anything.
pub fn has_written() -> bool {
    // SAFETY: reads a variable of this process.
    unsafe { pg_sys::GetTopTransactionIdIfAny().into_inner() != 0 }
}
