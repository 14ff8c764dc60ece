//! The atomic types of the shared state. They come from the standard library, or from loom if `--cfg loom` is set to
//! explore all interleavings.

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicU64, Ordering};
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};
