//! The shared memory segment `snowflake_pg`, which all backends use. It contains the generator's [`flake::State`], the
//! state of the mark's replication origin, and the data for logging and statistics. Other parts have their own shared
//! memory: the counters of each backend ([`crate::server::stats`]), the grant ([`crate::fleet::grant`]), and the
//! segments with their lock ([`crate::segments::slots`]).
//!
//! # Locking contract
//!
//! No lock protects this memory. All accesses to the generator's state go through [`flake::State`], whose methods can
//! be called by any number of processes at the same time and never wait. Only `unload` requires a lock, which
//! [`crate::generator::mark_storage`] takes. The condition variable has its own spinlock, which is held for only a few
//! instructions. Every other item is a single atomic. PostgreSQL's `AddinShmemInitLock` is held only while the
//! postmaster sets up the segment. After a backend crash, the postmaster sets up the segment again, and the state is
//! then "not loaded".
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

// SAFETY: the type consists of atomics, plain values, and a condition variable that protects itself. It contains no
// pointers. Every process that maps the segment has inherited this library from the same postmaster, so the type has
// the same layout in all processes.
unsafe impl PGRXSharedMemory for Shared {}

// SAFETY: the name is the extension's own, so no other library uses it.
static SHARED: PgAtomic<Shared> = unsafe { PgAtomic::new(c"snowflake_pg") };

/// Requests the segment. The postmaster calls this function while it preloads libraries.
#[allow(clippy::undocumented_unsafe_blocks)] // The unsafe blocks are in the macro.
pub fn request() {
    pg_shmem_init!(SHARED = Shared::new());
}

/// Returns the state. This function can be used only after [`request`]. If a process has an
/// [`crate::config::identity::Identity`], `request` has been called.
#[inline]
pub fn state() -> &'static State {
    &SHARED.get().state
}

/// Returns the state of the mark's replication origin. This function can be used only after [`request`].
pub fn origin_state() -> &'static OriginState {
    &SHARED.get().origin_state
}

/// Returns the limiters for repeated log messages. This function can be used only after [`request`].
pub fn limiters() -> &'static Limiters {
    &SHARED.get().limiters
}

/// Returns the condition on which sessions wait for another session to extend the reservation. This function can be
/// used only after [`request`].
pub fn extended() -> &'static Condition {
    &SHARED.get().extended
}

/// Returns the duration of the slowest extension of the reservation, in nanoseconds. This function can be used only
/// after [`request`].
pub fn slowest_extension() -> &'static AtomicU64 {
    &SHARED.get().slowest_extension
}

/// Returns when counting started, as a time of the wall clock in nanoseconds since the Unix epoch. This function can be
/// used only after [`request`].
pub fn counting_since() -> &'static AtomicU64 {
    &SHARED.get().counting_since
}

/// Returns a flag that is true if, when a session last tried to lock the witness, another server held the lock. This
/// function can be used only after [`request`].
pub fn worker_in_use() -> &'static AtomicBool {
    &SHARED.get().worker_in_use
}

/// Returns the number of rows that guards have refused, and the last refusal. This function can be used only after
/// [`request`].
pub fn refusals() -> &'static Refusals {
    &SHARED.get().refusals
}
