//! The write-ahead log: flushes it, and checks how much of it has been flushed.
#![allow(unsafe_code)]

use pgrx::pg_sys::{self, XLogRecPtr};

/// Waits until the WAL up to `position` has been flushed to disk, in the same way as COMMIT. `position` is the end of a
/// record that a process of this server has written.
pub fn flush(position: XLogRecPtr) {
    // SAFETY: the call reads and writes files and shared memory of this server under its own locks.
    unsafe { pg_sys::XLogFlush(position) };
}

/// Returns true if the WAL up to `position` has been flushed to disk.
pub fn is_flushed(position: XLogRecPtr) -> bool {
    // SAFETY: the call reads shared memory. A null pointer means that the timeline is not requested.
    unsafe { pg_sys::GetFlushRecPtr(std::ptr::null_mut()) >= position }
}
