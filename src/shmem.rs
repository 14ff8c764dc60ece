//! The shared memory of all backends, under the name `snowflake_pg`: the generator's [`flake::State`], what the keeper of the
//! mark has come to, and what the log and the statistics need. The counters of each backend are in [`crate::stats`].
//!
//! # Locking contract
//!
//! No lock guards it. Every access goes through [`flake::State`], whose methods are safe to call from any number of
//! processes at once and never wait; `unload` asks for a lock of the caller's, which [`crate::mark`]
//! takes. The rest is single atomics. PostgreSQL's `AddinShmemInitLock` is held only while the segment is set up, in the
//! postmaster. After a backend crash the postmaster sets the segment up anew, which leaves the state "not loaded".

use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;

use flake::State;
use pgrx::{PGRXSharedMemory, PgAtomic, pg_shmem_init, prelude::*};

use crate::announce::Limiters;
use crate::faults::{self, Fault};
use crate::keeper::Outcome;
use crate::{clock, stats};

/// What all backends share.
struct Shared {
    state: State,
    keeper: Outcome,
    limiters: Limiters,
    slowest_extension: AtomicU64,
    counting_since: AtomicU64,
}

impl Shared {
    fn new() -> Shared {
        Shared {
            state: State::new(),
            keeper: Outcome::new(),
            limiters: Limiters::default(),
            slowest_extension: AtomicU64::new(0),
            counting_since: AtomicU64::new(clock::wall()),
        }
    }
}

// SAFETY: made of atomics and plain values, and holds no pointer. Every process that maps the segment has this library
// from the same postmaster, and so the same layout.
#[allow(unsafe_code)]
unsafe impl PGRXSharedMemory for Shared {}

// SAFETY: the name is the extension's own, so no other library uses it.
#[allow(unsafe_code)]
static SHARED: PgAtomic<Shared> = unsafe { PgAtomic::new(c"snowflake_pg") };

/// Used by [`Fault::StatePerBackend`] only.
static OWN: OnceLock<State> = OnceLock::new();

/// Asks for the segment. In the postmaster, while it preloads libraries.
#[allow(unsafe_code, clippy::undocumented_unsafe_blocks)] // The macro's own blocks.
pub fn request() {
    pg_shmem_init!(SHARED = Shared::new());
    stats::request();
}

/// The state. Only after [`request`]; a process that has an [`crate::identity::Identity`] is such a process.
#[inline]
pub fn state() -> &'static State {
    if faults::on(Fault::StatePerBackend) {
        return OWN.get_or_init(State::new);
    }
    &SHARED.get().state
}

/// What the keeper of the mark has come to. As [`state`].
pub fn keeper() -> &'static Outcome {
    &SHARED.get().keeper
}

/// What keeps the log from filling. As [`state`].
pub fn limiters() -> &'static Limiters {
    &SHARED.get().limiters
}

/// How long the slowest extension of the reservation took, in nanoseconds. As [`state`].
pub fn slowest_extension() -> &'static AtomicU64 {
    &SHARED.get().slowest_extension
}

/// What the wall clock showed when counting began, in nanoseconds since the Unix epoch. As [`state`].
pub fn counting_since() -> &'static AtomicU64 {
    &SHARED.get().counting_since
}
