//! The assignment of a worker ID to the state. A server without a registry has one worker ID, whose assignment is
//! always 0.
//!
//! A registry can take a worker ID away and assign a different one, so assignments are numbered. The registrar
//! publishes each worker ID together with the number `n` of its assignment. Before a session that needs IDs loads the
//! state, it makes `n` the state's assignment ([`crate::State::assign`]). A caller that makes IDs from words keeps the
//! worker ID of one assignment. After each draw, it compares the number of that assignment with [`Assignment::get`]. If
//! the numbers differ, the caller discards the words.
//!
//! # Why the words that a caller keeps belong to its assignment
//!
//! Suppose that a caller that makes IDs for assignment `n` has drawn words, and then finds that `n` is still the
//! current assignment.
//!
//! - *The words were not drawn before `n`.* The caller got its worker ID after it had read assignment `n` (`Acquire`)
//!   or had set it. The state had been unloaded before that (`Release`). In the modification order of `last`, any later
//!   draw's swap comes after the unloading. The swap therefore replaces a value that comes from a load for `n` or for a
//!   later assignment.
//! - *The words were not drawn after `n`.* The swap of a draw reads a value of `last` (`Acquire`) that derives from the
//!   store of a load (`Release`), because all changes to `last` in between are swaps. If this load was for an
//!   assignment after `n`, the caller sees that assignment, and no longer reads `n`.
//!
//! A caller that loads the state reads the generation first and the assignment second. The load is for this assignment,
//! because each change of assignment unloads the state, and a load fails if the state was unloaded after the generation
//! was read.
//!
//! [`Assignment::revoke`] does not unload the state, because the registrar cannot take the lock. The state remains
//! loaded for an assignment that no caller has, so all words that are drawn from then on are discarded. A caller that
//! has already compared the numbers can still return its IDs, just as a statement that already has IDs can still insert
//! them.

use crate::sync::{AtomicU64, Ordering};

/// The flag of an assignment that is being changed. The caller that has set the flag is unloading the state.
const CHANGING: u64 = 1 << 62;

/// The flag of a revoked assignment.
const REVOKED: u64 = 1 << 63;

/// The number of the assignment for which the state is loaded.
#[derive(Default)]
pub struct Assignment(AtomicU64);

impl Assignment {
    /// Returns the number of the assignment. If the assignment is being changed or has been revoked, returns a value
    /// that is not the number of any assignment.
    #[inline(always)]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// Ends every assignment up to `number`, which the caller has published as an assignment without a worker ID. After
    /// this call, a caller that has read the assignment earlier can no longer change it, because each number is revoked
    /// only once.
    pub fn revoke(&self, number: u64) {
        self.0.swap(REVOKED | number, Ordering::SeqCst);
    }

    /// Begins to change the assignment. Only one caller succeeds, even if several callers hold the same lock, as the
    /// processes of a parallel query do.
    pub(crate) fn begin(&self, from: u64, to: u64) -> bool {
        let idle = from & CHANGING == 0;
        idle && self.0.compare_exchange(from, CHANGING | to, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    /// Ends the change. Returns false if the assignment has been revoked in the meantime.
    pub(crate) fn end(&self, to: u64) -> bool {
        self.0.compare_exchange(CHANGING | to, to, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }
}
