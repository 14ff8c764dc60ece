//! Observes two kinds of utility statements: `COPY .. FROM`, and `DISCARD`, because PostgreSQL has no hook that is
//! called when it discards the values of sequences. PostgreSQL passes each utility statement to `ProcessUtility_hook`,
//! even if a function runs it.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::OnceLock;

use pgrx::pg_sys;
use pgrx::pg_sys::DiscardMode::{DISCARD_ALL, DISCARD_SEQUENCES};

/// The hook that was installed before [`utility`].
static PREVIOUS: OnceLock<pg_sys::ProcessUtility_hook_type> = OnceLock::new();

/// The function to call after a `DISCARD` of sequences.
static AFTER_DISCARD: OnceLock<fn()> = OnceLock::new();

thread_local! {
    /// True if the innermost utility statement being executed is `COPY .. FROM`.
    static COPIES: Cell<bool> = const { Cell::new(false) };
}

unsafe extern "C-unwind" {
    // This function is declared here because the pgrx wrapper turns an error into a panic. Each failed statement would
    // then require catching the panic and raising it again. See `utility`.
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

/// Observes the utility statements of each session. `after_discard` is called after every successful `DISCARD ALL` or
/// `DISCARD SEQUENCES`, and must not panic. The postmaster calls this function while it preloads libraries.
pub fn observe(after_discard: fn()) {
    let _ = AFTER_DISCARD.set(after_discard);
    // SAFETY: the hook is a variable of this process, which is single-threaded. Libraries may set this hook and
    // register callbacks when they are loaded. The callbacks do not use their argument.
    unsafe {
        let _ = PREVIOUS.set(pg_sys::ProcessUtility_hook);
        pg_sys::ProcessUtility_hook = Some(utility);
        pg_sys::RegisterXactCallback(Some(transaction_ends), ptr::null_mut());
        pg_sys::RegisterSubXactCallback(Some(subtransaction_ends), ptr::null_mut());
    }
}

/// Returns true if the innermost utility statement being executed is `COPY .. FROM`. After an error that was caught
/// inside such a statement, returns false until the statement ends.
pub fn copies() -> bool {
    COPIES.get()
}

/// Resets the flag after an error has ended the statement.
///
/// # Safety
///
/// PostgreSQL calls this function at the end of a transaction.
unsafe extern "C-unwind" fn transaction_ends(event: pg_sys::XactEvent::Type, _: *mut c_void) {
    if event == pg_sys::XactEvent::XACT_EVENT_ABORT {
        COPIES.set(false);
    }
}

/// Resets the flag after an error has ended a statement. This also affects the outer statement, which continues,
/// because the two cannot be distinguished without a stack of all statements.
///
/// # Safety
///
/// PostgreSQL calls this function at the beginning and the end of a subtransaction.
unsafe extern "C-unwind" fn subtransaction_ends(
    event: pg_sys::SubXactEvent::Type,
    _: pg_sys::SubTransactionId,
    _: pg_sys::SubTransactionId,
    _: *mut c_void,
) {
    if event == pg_sys::SubXactEvent::SUBXACT_EVENT_ABORT_SUB {
        COPIES.set(false);
    }
}

/// Passes each utility statement on. Records whether it is `COPY .. FROM` while it is executed, and detects a
/// successful `DISCARD` of sequences.
///
/// This function has no pgrx guard, because nothing in it panics. An error in the statement leaves this frame through
/// PostgreSQL's `longjmp`, which is safe because the frame has nothing to drop. The end of the transaction or
/// subtransaction then resets the flag.
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
    // SAFETY: PostgreSQL passes a valid node. The node is read before the statement is executed, because a statement
    // that ends the transaction can free the node.
    let (discards, copies) =
        unsafe { (discards_sequences((*statement).utilityStmt), is_copy_from((*statement).utilityStmt)) };
    let outer = COPIES.replace(copies);
    let next = PREVIOUS.get().copied().flatten().unwrap_or(standard_ProcessUtility);
    // SAFETY: the arguments are passed on unchanged.
    unsafe { next(statement, text, read_only_tree, context, parameters, environment, destination, completion) };
    COPIES.set(outer);
    if let Some(after) = AFTER_DISCARD.get().filter(|_| discards) {
        after();
    }
}

/// Returns true if the statement is `DISCARD ALL` or `DISCARD SEQUENCES`.
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

/// Returns true if the statement is `COPY .. FROM`.
///
/// # Safety
///
/// `statement` is null or points to a node.
unsafe fn is_copy_from(statement: *mut pg_sys::Node) -> bool {
    // SAFETY: the caller guarantees that the pointer is null or points to a node, and the tag shows that the node is a CopyStmt.
    unsafe {
        !statement.is_null()
            && (*statement).type_ == pg_sys::NodeTag::T_CopyStmt
            && (*statement.cast::<pg_sys::CopyStmt>()).is_from
    }
}
