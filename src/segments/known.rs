//! The tags that this server has seen in the registry. This information can be outdated. It only affects the order in
//! which the registrar serves the tags.
#![allow(unsafe_code)]

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use pgrx::pg_shmem_init;
use pgrx::prelude::*;

use crate::pg::backend_slots::SharedArray;

/// The number of tags that are remembered. A tag can overwrite a different one, which the registrar must then look up
/// again.
const REMEMBERED: usize = 16_384;

// SAFETY: the name is the extension's own, and is used once. The items are plain numbers.
static KNOWN: SharedArray<AtomicU64> = unsafe { SharedArray::new(c"snowflake_pg known tags", || REMEMBERED) };

/// Requests shared memory. The postmaster calls this function while it preloads libraries.
#[allow(clippy::undocumented_unsafe_blocks)] // The unsafe blocks are in the macro.
pub fn request() {
    pg_shmem_init!(KNOWN = ());
}

/// Returns true if the registry had this tag when the registrar last requested it.
pub fn contains(tag: &str) -> bool {
    place(tag).is_some_and(|(place, hash)| place.load(Ordering::Relaxed) == hash)
}

/// Records that the registry has this tag.
pub fn note(tag: &str) {
    if let Some((place, hash)) = place(tag) {
        place.store(hash, Ordering::Relaxed);
    }
}

/// Records that the registry does not have this tag.
pub fn forget(tag: &str) {
    if let Some((place, hash)) = place(tag) {
        _ = place.compare_exchange(hash, 0, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// Returns the location at which a tag is stored, and the tag's hash, which is the same in all processes. The hash is
/// never 0, because 0 means that the location is empty.
fn place(tag: &str) -> Option<(&'static AtomicU64, u64)> {
    let mut hasher = DefaultHasher::new();
    tag.hash(&mut hasher);
    let hash = hasher.finish();
    Some((KNOWN.all().get(hash as usize % REMEMBERED)?, hash | 1))
}
