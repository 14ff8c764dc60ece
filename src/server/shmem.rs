//! The shared memory of all backends, under the name `snowflake_pg`: the generator's [`flake::State`], the state of the mark's
//! replication origin, and what the log and the statistics need. The counters of each backend are in [`crate::server::stats`].
//!
//! # Locking contract
//!
//! No lock guards this memory. Every access goes through [`flake::State`], whose methods are safe to call from any number of
//! processes at once and never wait; `unload` requires a lock, which [`crate::generator::mark`] takes. The condition variable has
//! its own spinlock, which is held for a few instructions. Every other item is a single atomic. PostgreSQL's `AddinShmemInitLock`
//! is held only while the segment is set up, in the postmaster. After a backend crash, the postmaster sets the segment up again,
//! and the state is then "not loaded".
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, AtomicU64};

use pgrx::{PGRXSharedMemory, PgAtomic, pg_shmem_init, prelude::*};

pub use crate::faults::State;
use crate::pg::backend_slots::SHARED_ALIGNMENT;
use crate::pg::condition_variable::Condition;
use crate::server::clock;
use crate::server::log_limit::Limiters;
use crate::server::origin_state::OriginState;
use crate::server::refusals::Refusals;

/// The data that all backends share.
struct Shared {
    state: State,
    origin_state: OriginState,
    limiters: Limiters,
    extended: Condition,
    slowest_extension: AtomicU64,
    counting_since: AtomicU64,
    worker_in_use: AtomicBool,
    refusals: Refusals,
}

impl Shared {
    fn new() -> Shared {
        Shared {
            state: State::new(),
            origin_state: OriginState::new(),
            limiters: Limiters::default(),
            extended: Condition::default(),
            slowest_extension: AtomicU64::new(0),
            counting_since: AtomicU64::new(clock::wall()),
            worker_in_use: AtomicBool::new(false),
            refusals: Refusals::default(),
        }
    }
}

const _: () = assert!(align_of::<Shared>() <= SHARED_ALIGNMENT);

// SAFETY: the type consists of atomics, plain values, and a condition variable that guards itself. It contains no pointer. Every
// process that maps the segment has inherited this library from the same postmaster, so it has the same layout.
unsafe impl PGRXSharedMemory for Shared {}

// SAFETY: the name is the extension's own, so no other library uses it.
static SHARED: PgAtomic<Shared> = unsafe { PgAtomic::new(c"snowflake_pg") };

/// Requests the segment. This function is called in the postmaster while it preloads libraries.
#[allow(clippy::undocumented_unsafe_blocks)] // The unsafe blocks are in the macro.
pub fn request() {
    pg_shmem_init!(SHARED = Shared::new());
}

/// Returns the state. This function can be used only after [`request`]. A process that has an
/// [`crate::config::identity::Identity`] has called `request`.
#[inline]
pub fn state() -> &'static State {
    &SHARED.get().state
}

/// Returns the state of the mark's replication origin. This function can be used only after [`request`].
pub fn origin_state() -> &'static OriginState {
    &SHARED.get().origin_state
}

/// Returns the limits on repeated log lines. This function can be used only after [`request`].
pub fn limiters() -> &'static Limiters {
    &SHARED.get().limiters
}

/// Returns the condition on which sessions wait until another session has extended the reservation. This function can be used only
/// after [`request`].
pub fn extended() -> &'static Condition {
    &SHARED.get().extended
}

/// Returns how long the slowest extension of the reservation took, in nanoseconds. This function can be used only after
/// [`request`].
pub fn slowest_extension() -> &'static AtomicU64 {
    &SHARED.get().slowest_extension
}

/// Returns the time on the wall clock at which the counts began, in nanoseconds since the Unix epoch. This function can be used
/// only after [`request`].
pub fn counting_since() -> &'static AtomicU64 {
    &SHARED.get().counting_since
}

/// Returns whether the last session that tried to lock the witness found it locked by another server. This function can be used
/// only after [`request`].
pub fn worker_in_use() -> &'static AtomicBool {
    &SHARED.get().worker_in_use
}

/// Returns the count of the rows that guards have refused. This function can be used only after [`request`].
pub fn refusals() -> &'static Refusals {
    &SHARED.get().refusals
}
