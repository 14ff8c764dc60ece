//! For which worker ID the state is loaded. A server without a registry has one worker ID, and its assignment is always 0.
//!
//! A registry can take a worker ID away and assign another one. The assignments are numbered: the registrar publishes number `n`
//! with the worker ID, and a session that wants to issue IDs makes `n` the assignment of the state ([`crate::State::assign`]) before
//! it loads the state. A caller that makes IDs from words keeps the worker ID of one assignment, and compares the number with
//! [`Assignment::get`] after each draw. It drops the words if the numbers differ.
//!
//! # Why the words that a caller keeps belong to its assignment
//!
//! Say that a caller makes IDs for assignment `n`, has drawn words, and then reads assignment `n`.
//!
//! - *The words were not drawn before `n`.* The caller got its worker ID after it had read the assignment `n` (`Acquire`), or had set
//!   it. The state was unloaded before this (`Release`). The swap of a later draw therefore follows the unloading in the
//!   modification order of `last`, so it replaces a value that a load for `n` or for a later assignment has stored.
//! - *The words were not drawn after `n`.* The swap of a draw reads a value of `last` (`Acquire`) that goes back to the store of a
//!   load (`Release`), because all changes of `last` in between are swaps. If this load was for an assignment after `n`, the caller
//!   sees this assignment, and no longer reads `n`.
//!
//! A caller that loads the state reads the generation first, and then the assignment. The load is for this assignment, because each
//! change of the assignment unloads the state, and a load fails if the state was unloaded after the generation was read.
//!
//! [`Assignment::revoke`] does not unload the state, because the registrar cannot take the lock. The state remains loaded for an
//! assignment that no caller has, so all words that are drawn are dropped. A caller that has compared the numbers before that can
//! still return its IDs, in the same way as a statement that has them can still insert them.

use crate::sync::{AtomicU64, Ordering};

/// The flag of an assignment that is being set. Its holder is unloading the state.
const CHANGING: u64 = 1 << 62;

/// The flag of an assignment that was revoked.
const REVOKED: u64 = 1 << 63;

/// The number of the assignment for which the state is loaded.
#[derive(Default)]
pub struct Assignment(AtomicU64);

impl Assignment {
    /// Returns the assignment: a number, or another value if it is changing or was revoked.
    #[inline(always)]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// Ends every assignment up to `number`, which the caller has published as one without a worker ID. No assignment that was read
    /// before can be changed any more, because each number is revoked once.
    pub fn revoke(&self, number: u64) {
        self.0.swap(REVOKED | number, Ordering::SeqCst);
    }

    /// Begins to change the assignment. One caller succeeds, even if several have the same lock, as the processes of a parallel query
    /// do.
    pub(crate) fn begin(&self, from: u64, to: u64) -> bool {
        let idle = from & CHANGING == 0;
        idle && self.0.compare_exchange(from, CHANGING | to, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    /// Ends the change, unless the assignment was revoked in the meantime.
    pub(crate) fn end(&self, to: u64) -> bool {
        self.0.compare_exchange(CHANGING | to, to, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }
}
