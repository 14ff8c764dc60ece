//! Detects `DISCARD` statements. PostgreSQL has no hook for discarding the values of sequences, but it passes the
//! statement to `ProcessUtility_hook`, even if a function runs it.
#![allow(unsafe_code)]

use std::ffi::c_char;
use std::sync::OnceLock;

use pgrx::pg_sys;
use pgrx::pg_sys::DiscardMode::{DISCARD_ALL, DISCARD_SEQUENCES};

/// The hook that was set before [`utility`].
static PREVIOUS: OnceLock<pg_sys::ProcessUtility_hook_type> = OnceLock::new();

/// The function to call after a `DISCARD` of sequences.
static AFTER_DISCARD: OnceLock<fn()> = OnceLock::new();

unsafe extern "C-unwind" {
    // This function is declared here because the pgrx wrapper turns an error into a panic. The panic would then have to be caught
    // and raised again for each statement that fails. See `utility`.
    fn standard_ProcessUtility(
        statement: *mut pg_sys::PlannedStmt,
        text: *const c_char,
        read_only_tree: bool,
        context: pg_sys::ProcessUtilityContext::Type,
        parameters: pg_sys::ParamListInfo,
        environment: *mut pg_sys::QueryEnvironment,
        destination: *mut pg_sys::DestReceiver,
        completion: *mut pg_sys::QueryCompletion,
    );
}

/// Calls `after` in each session after every successful `DISCARD ALL` or `DISCARD SEQUENCES`. `after` must not panic.
/// This function is called in the postmaster while it preloads libraries.
pub fn after_discard(after: fn()) {
    let _ = AFTER_DISCARD.set(after);
    // SAFETY: the hook is a variable of this process, which has one thread. Libraries may set this hook when they are loaded.
    unsafe {
        let _ = PREVIOUS.set(pg_sys::ProcessUtility_hook);
        pg_sys::ProcessUtility_hook = Some(utility);
    }
}

/// Passes each utility statement on, and detects a successful `DISCARD` of sequences.
///
/// This function has no pgrx guard, because nothing in it panics. An error in the statement leaves this frame through PostgreSQL's
/// `longjmp`, which is safe because the frame has nothing to drop.
///
/// # Safety
///
/// PostgreSQL calls this function in the same way as `standard_ProcessUtility`.
unsafe extern "C-unwind" fn utility(
    statement: *mut pg_sys::PlannedStmt,
    text: *const c_char,
    read_only_tree: bool,
    context: pg_sys::ProcessUtilityContext::Type,
    parameters: pg_sys::ParamListInfo,
    environment: *mut pg_sys::QueryEnvironment,
    destination: *mut pg_sys::DestReceiver,
    completion: *mut pg_sys::QueryCompletion,
) {
    // SAFETY: PostgreSQL passes a valid node. The node is read before the statement runs, because a statement that ends the
    // transaction can free the node.
    let discards = unsafe { discards_sequences((*statement).utilityStmt) };
    let next = PREVIOUS.get().copied().flatten().unwrap_or(standard_ProcessUtility);
    // SAFETY: the arguments are passed on unchanged.
    unsafe { next(statement, text, read_only_tree, context, parameters, environment, destination, completion) };
    if let Some(after) = AFTER_DISCARD.get().filter(|_| discards) {
        after();
    }
}

/// Returns true for `DISCARD ALL` and `DISCARD SEQUENCES`.
///
/// # Safety
///
/// `statement` is null or points to a node.
unsafe fn discards_sequences(statement: *mut pg_sys::Node) -> bool {
    // SAFETY: the caller guarantees that the pointer is null or points to a node, and the tag shows that the node is a
    // DiscardStmt.
    unsafe {
        !statement.is_null()
            && (*statement).type_ == pg_sys::NodeTag::T_DiscardStmt
            && matches!((*statement.cast::<pg_sys::DiscardStmt>()).target, DISCARD_ALL | DISCARD_SEQUENCES)
    }
}
