//! The last ID of this session.

use std::sync::atomic::{AtomicI64, Ordering};

use crate::faults;

/// The value of [`CURRENT`] before the first ID.
const NONE: i64 = -1;

/// The last ID issued to this session, or a negative number before the first ID. The variable is an atomic only because Rust
/// requires this of a static variable that changes. Each session is a process with one thread.
static CURRENT: AtomicI64 = AtomicI64::new(NONE);

/// Returns the last ID issued to this session.
pub fn get() -> Option<i64> {
    Some(CURRENT.load(Ordering::Relaxed)).filter(|id| *id >= 0)
}

/// Makes an ID the last one of this session, and returns it.
#[inline(always)]
pub fn set(id: i64) -> i64 {
    let id = faults::counted_on(id, get);
    CURRENT.store(id, Ordering::Relaxed);
    id
}

/// Clears the last ID of this session, in the same way as `DISCARD` clears the last values of sequences. Otherwise, if a pooler
/// hands a session from one client to the next, `snowflake_currval()` would return the ID of the previous client.
pub fn forget() {
    CURRENT.store(NONE, Ordering::Relaxed);
}
