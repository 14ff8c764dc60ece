//! A PostgreSQL condition variable in shared memory. Sessions sleep on it without polling, until another session wakes
//! them.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;

use pgrx::pg_sys;

/// A condition for which sessions wait. It is in shared memory, at the same address in all processes.
pub struct Condition(UnsafeCell<pg_sys::ConditionVariable>);

// SAFETY: PostgreSQL's functions protect the variable with its own spinlock.
unsafe impl Sync for Condition {}

impl Default for Condition {
    /// Returns a condition for which no session is waiting.
    fn default() -> Condition {
        let mut condition = pg_sys::ConditionVariable::default();
        // SAFETY: the call initializes plain numbers, which may be moved as long as no session is waiting.
        unsafe { pg_sys::ConditionVariableInit(&raw mut condition) };
        Condition(UnsafeCell::new(condition))
    }
}

impl Condition {
    pub fn wake_all(&self) {
        // SAFETY: the variable is in shared memory, initialized, and protected by its own spinlock, which is held for
        // only a few instructions.
        unsafe { pg_sys::ConditionVariableBroadcast(self.0.get()) };
    }

    /// Wakes the session that has been waiting longest.
    pub fn wake_one(&self) {
        // SAFETY: the variable is in shared memory, initialized, and protected by its own spinlock, as in `wake_all`.
        // The call does not allocate memory or raise errors, so it may be made while an error is propagated.
        unsafe { pg_sys::ConditionVariableSignal(self.0.get()) };
    }

    /// Joins the waiting sessions. From this call on, no wake-up is lost. The caller must therefore check the condition
    /// after this call, and then sleep.
    pub fn join(&self) -> Waiting<'_> {
        // SAFETY: this process is a backend in a transaction. After an error, the end of the transaction removes the
        // process from the list.
        unsafe { pg_sys::ConditionVariablePrepareToSleep(self.0.get()) };
        Waiting(self)
    }
}

/// The position of this session in the list of waiting sessions. The session leaves the list when this value goes out
/// of scope.
pub struct Waiting<'condition>(&'condition Condition);

impl Waiting<'_> {
    /// Sleeps until another session wakes this session, for at most `milliseconds`. Returns true if this session was
    /// woken. `event` is the wait event that `pg_stat_activity` shows. A request to cancel the statement or to
    /// terminate the session takes effect immediately.
    pub fn sleep(&self, milliseconds: i64, event: u32) -> bool {
        // SAFETY: this process has joined the list and holds no locks.
        unsafe { !pg_sys::ConditionVariableTimedSleep(self.0.0.get(), milliseconds, event) }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        // SAFETY: the call removes this process from the list, or has no effect if the process is not in a list.
        unsafe {
            pg_sys::ConditionVariableCancelSleep();
        }
    }
}
