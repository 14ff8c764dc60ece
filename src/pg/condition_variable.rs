//! A PostgreSQL condition variable in shared memory. Sessions sleep on it, without polling, until another session wakes them.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;

use pgrx::pg_sys;

/// A condition that sessions wait for. The condition is in shared memory, which all processes see at the same address.
pub struct Condition(UnsafeCell<pg_sys::ConditionVariable>);

// SAFETY: PostgreSQL's functions guard the variable by its own spinlock.
unsafe impl Sync for Condition {}

impl Default for Condition {
    /// Returns a condition on which no session waits.
    fn default() -> Condition {
        let mut condition = pg_sys::ConditionVariable::default();
        // SAFETY: the call initializes plain numbers, which may be moved as long as no session waits.
        unsafe { pg_sys::ConditionVariableInit(&raw mut condition) };
        Condition(UnsafeCell::new(condition))
    }
}

impl Condition {
    /// Wakes all waiting sessions.
    pub fn wake_all(&self) {
        // SAFETY: the variable is in shared memory, initialized, and guarded by its own spinlock, which is held for a
        // few instructions.
        unsafe { pg_sys::ConditionVariableBroadcast(self.0.get()) };
    }

    /// Wakes the session that has waited longest.
    pub fn wake_one(&self) {
        // SAFETY: the variable is in shared memory, initialized, and guarded by its own spinlock, as in `wake_all`. The call
        // allocates nothing and raises no error, so it may run while an error is propagated.
        unsafe { pg_sys::ConditionVariableSignal(self.0.get()) };
    }

    /// Joins the waiting sessions. After this call, no wake-up is lost, so the caller must check the condition and then sleep.
    pub fn join(&self) -> Waiting<'_> {
        // SAFETY: this process is a backend in a transaction. After an error, the end of the transaction removes the process from
        // the list.
        unsafe { pg_sys::ConditionVariablePrepareToSleep(self.0.get()) };
        Waiting(self)
    }
}

/// The place of this session in the list of waiting sessions. The place is released when this value goes out of scope.
pub struct Waiting<'condition>(&'condition Condition);

impl Waiting<'_> {
    /// Sleeps until another session wakes this session, but for `milliseconds` at most. Returns true if this session was woken.
    /// `event` is the wait event that `pg_stat_activity` shows. A request to cancel the statement or to terminate the session
    /// takes effect immediately.
    pub fn sleep(&self, milliseconds: i64, event: u32) -> bool {
        // SAFETY: this process has joined, and holds no lock.
        unsafe { !pg_sys::ConditionVariableTimedSleep(self.0.0.get(), milliseconds, event) }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        // SAFETY: the call removes this process from the list, or does nothing if the process is not in a list.
        unsafe {
            pg_sys::ConditionVariableCancelSleep();
        }
    }
}
