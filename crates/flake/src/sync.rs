//! The atomics of the shared state: those of the standard library, or those of loom if `--cfg loom` explores every interleaving.

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicU64, Ordering};
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};
