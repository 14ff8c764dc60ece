//! The state all callers share, and the loop that draws from it without a lock.
//!
//! # Locking contract
//!
//! There is no lock. `last` changes by compare-and-swap only, and only upwards, once it is loaded; who succeeds owns the
//! words between the old value and the new. `ceiling` may rise at any time and never falls. Nobody waits in here:
//! whatever cannot be granted at once comes back as a [`Step`] for the caller to act on.

use crate::sync::{AtomicU64, Ordering};
use crate::{Limits, Nanos, Pace, Request, Step, step};

/// `last` before the state is loaded. No word has this value, so no swap can succeed on it.
pub const NOT_LOADED: u64 = u64::MAX;

/// A ceiling above every word.
pub const NO_CEILING: u64 = u64::MAX;

/// One atomic on cache lines of its own: 128 bytes, because x86 processors fetch lines in pairs (Intel 64 and IA-32
/// Architectures Optimization Reference Manual, "spatial prefetcher").
#[repr(C, align(128))]
struct Line(AtomicU64);

/// The generator's shared state.
#[repr(C)]
pub struct State {
    last: Line,
    ceiling: Line,
}

impl State {
    /// A state that issues nothing until [`State::load`].
    pub fn new() -> State {
        State { last: Line(AtomicU64::new(NOT_LOADED)), ceiling: Line(AtomicU64::new(0)) }
    }

    /// Lets issuing begin: at `first` at the earliest, below `ceiling`. Only the first call sets where it begins; every
    /// call raises the ceiling to its own, if that is higher.
    pub fn load(&self, first: u64, ceiling: u64) {
        // fetch_max, so that a late loader cannot lower what an earlier one published.
        self.ceiling.0.fetch_max(ceiling, Ordering::Relaxed);
        let last = first.saturating_sub(1);
        // Release: who sees the state loaded sees the ceiling that belongs to it. A failure means another was first.
        let _ = self.last.0.compare_exchange(NOT_LOADED, last, Ordering::Release, Ordering::Relaxed);
    }

    /// Draws words: `Ok` with a [`Run`](crate::Run) that is the caller's alone, or the [`Step`] that must come first.
    /// `None` in place of a step: not loaded. `clock` is read once per attempt, after the state: the other order would
    /// see words of a later time than its own and take that for a lead.
    #[inline(always)]
    pub fn draw(
        &self,
        limits: &Limits,
        pace: Pace,
        request: Request,
        mut clock: impl FnMut() -> Nanos,
    ) -> Result<crate::Run, Option<Step>> {
        loop {
            // Acquire: pairs with the Release of `load`, so that the ceiling read next is not older than the state.
            let last = self.last.0.load(Ordering::Acquire);
            if last == NOT_LOADED {
                return Err(None);
            }
            let ceiling = self.ceiling.0.load(Ordering::Relaxed);
            match step(last, clock(), ceiling, limits, pace, request) {
                Step::Issue(run) => {
                    // Relaxed: the words are owned by the atomicity of the swap; nothing else is published with them.
                    let swap =
                        self.last.0.compare_exchange_weak(last, run.last(), Ordering::Relaxed, Ordering::Relaxed);
                    if swap.is_ok() {
                        return Ok(run);
                    }
                }
                other => return Err(Some(other)),
            }
        }
    }
}

impl Default for State {
    fn default() -> Self {
        State::new()
    }
}
