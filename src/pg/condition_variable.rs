//! A condition variable of PostgreSQL in shared memory. Sessions sleep on it, without polling, until another session
//! wakes them.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;

use pgrx::pg_sys;

/// A condition that sessions wait for. It is in shared memory, where all processes see it at the same address.
pub struct Condition(UnsafeCell<pg_sys::ConditionVariable>);

impl Condition {
    /// A condition on which no session waits.
    pub fn new() -> Condition {
        let mut condition = pg_sys::ConditionVariable::default();
        // SAFETY: initializes plain numbers, which may be moved as long as no session waits.
        unsafe { pg_sys::ConditionVariableInit(&raw mut condition) };
        Condition(UnsafeCell::new(condition))
    }

    /// Wakes all waiting sessions.
    pub fn wake_all(&self) {
        // SAFETY: the variable is in shared memory, initialized, and guarded by its own spinlock, which is held for a
        // few instructions.
        unsafe { pg_sys::ConditionVariableBroadcast(self.0.get()) };
    }

    /// Wakes the session that has waited longest.
    pub fn wake_one(&self) {
        // SAFETY: as in `wake_all`. It allocates nothing and raises no error, so it may run while an error is
        // propagated.
        unsafe { pg_sys::ConditionVariableSignal(self.0.get()) };
    }

    /// Joins the waiting sessions. No wake-up is lost from here on: check the condition, then sleep.
    pub fn join(&self) -> Waiting<'_> {
        // SAFETY: this is a backend in a transaction. After an error, the end of the transaction removes it from the
        // list.
        unsafe { pg_sys::ConditionVariablePrepareToSleep(self.0.get()) };
        Waiting(self)
    }
}

/// This session's place in the list of waiting sessions, released when it goes out of scope.
pub struct Waiting<'condition>(&'condition Condition);

impl Waiting<'_> {
    /// Sleeps until another session wakes this one, for this many milliseconds at most. Returns true if it was woken.
    /// `event` is what `pg_stat_activity` shows. A request to cancel the statement or to terminate the session takes
    /// effect immediately.
    pub fn sleep(&self, milliseconds: i64, event: u32) -> bool {
        // SAFETY: this process has joined, and holds no lock.
        unsafe { !pg_sys::ConditionVariableTimedSleep(self.0.0.get(), milliseconds, event) }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        // SAFETY: removes this process from the list, or does nothing if it is in no list.
        unsafe {
            pg_sys::ConditionVariableCancelSleep();
        }
    }
}
