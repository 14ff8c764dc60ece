//! The end of threads that run until a flag is set.

use std::sync::atomic::{AtomicBool, Ordering};

/// Sets the flag when this value is dropped, so that the threads that run until then end even after a panic.
pub struct SetOnDrop<'flag>(pub &'flag AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
