//! The last ID that was issued to this session.

use std::sync::atomic::{AtomicI64, Ordering};

use crate::faults;

/// The value of [`CURRENT`] before the first ID.
const NONE: i64 = -1;

/// The last ID issued to this session, or a negative number before the first ID. Only this process's single thread
/// accesses the variable. It is atomic because Rust does not allow other mutable statics in safe code.
static CURRENT: AtomicI64 = AtomicI64::new(NONE);

/// Returns the last ID issued to this session.
pub fn get() -> Option<i64> {
    Some(CURRENT.load(Ordering::Relaxed)).filter(|id| *id >= 0)
}

/// Stores an ID as this session's last ID and returns it.
#[inline(always)]
pub fn set(id: i64) -> i64 {
    let id = faults::counted_on(id, get);
    CURRENT.store(id, Ordering::Relaxed);
    id
}

/// Clears this session's last ID, as `DISCARD` clears the last values of sequences. Otherwise, if a pooler assigned the
/// session to a different client, `snowflake_currval()` would return the previous client's ID.
pub fn forget() {
    CURRENT.store(NONE, Ordering::Relaxed);
}
