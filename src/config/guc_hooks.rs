//! The functions that PostgreSQL calls when it shows a setting or checks a new value.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_void};
use std::sync::OnceLock;

use flake::IdFormat;
use pgrx::guc::GucSetting;
use pgrx::{pg_sys, prelude::*};

use crate::config::epoch;
use crate::message::layout::LayoutProblem;
use crate::pg::c_string;

/// The value of `snowflake_pg.worker_id` while no worker ID is configured.
pub const UNSET: i32 = -1;

/// The value of `snowflake_pg.worker_id`.
pub static WORKER: GucSetting<i32> = GucSetting::<i32>::new(UNSET);

/// Callbacks to higher-level modules.
pub struct Callbacks {
    /// Returns the worker ID that the registry has assigned.
    pub assigned: fn() -> Option<u32>,
    /// Records that a registry is configured. Each process that reads the configuration calls this function.
    pub registry_given: fn(),
}

/// The postmaster sets this variable once, and its children inherit it.
pub static CALLBACKS: OnceLock<Callbacks> = OnceLock::new();

/// Shows the worker ID that the registry has assigned, if there is one.
#[pg_guard]
pub unsafe extern "C-unwind" fn show_worker() -> *const c_char {
    thread_local!(static SHOWN: RefCell<CString> = RefCell::default());
    let assigned = CALLBACKS.get().and_then(|callbacks| (callbacks.assigned)());
    let number = assigned.map_or(WORKER.get(), u32::cast_signed);
    SHOWN.with_borrow_mut(|shown| {
        *shown = CString::new(number.to_string()).unwrap_or_default();
        shown.as_ptr()
    })
}

/// Rejects a malformed layout, so that `ALTER SYSTEM` fails instead of the next server start.
#[pg_guard]
pub unsafe extern "C-unwind" fn check_layout(
    value: *mut *mut c_char,
    _extra: *mut *mut c_void,
    _source: pg_sys::GucSource::Type,
) -> bool {
    // SAFETY: PostgreSQL passes the hook a valid pointer to the new value, which is null or a C string.
    let text = unsafe { c_string::lossy(*value) }.unwrap_or_default();
    accept(IdFormat::parse(&text).map(|_| ()).map_err(|error| LayoutProblem::Setting { text, error }))
}

/// Rejects a malformed epoch, so that `ALTER SYSTEM` fails instead of the next server start.
#[pg_guard]
pub unsafe extern "C-unwind" fn check_epoch(
    value: *mut *mut c_char,
    _extra: *mut *mut c_void,
    _source: pg_sys::GucSource::Type,
) -> bool {
    // SAFETY: PostgreSQL passes the hook a valid pointer to the new value, which is null or a C string.
    let text = unsafe { c_string::lossy(*value) }.unwrap_or_default();
    let checked = epoch::parse(&text).map(|_| ());
    accept(checked.map_err(|problem| LayoutProblem::EpochSetting { text, problem }))
}

/// Reports that a registry is configured. PostgreSQL calls this hook in each process that reads the configuration.
#[pg_guard]
pub unsafe extern "C-unwind" fn check_registry(
    value: *mut *mut c_char,
    _extra: *mut *mut c_void,
    _source: pg_sys::GucSource::Type,
) -> bool {
    // SAFETY: PostgreSQL passes the hook a valid pointer to the new value, which is null or a C string.
    let given = unsafe { c_string::lossy(*value) }.is_some_and(|text| !text.trim().is_empty());
    if let Some(callbacks) = CALLBACKS.get().filter(|_| given) {
        (callbacks.registry_given)();
    }
    true
}

/// Returns the result of a check hook. If the check failed, stores the error's detail and hint where PostgreSQL finds
/// them when it raises its own error.
fn accept(checked: Result<(), LayoutProblem>) -> bool {
    let Err(error) = checked else { return true };
    let report = error.report();
    let c_text = |text: &str| CString::new(text).unwrap_or_default();
    // SAFETY: pstrdup allocates in the current memory context. This context outlives the error that PostgreSQL raises
    // with these strings as soon as the hook returns false.
    unsafe {
        pg_sys::GUC_check_errcode(report.code as i32);
        pg_sys::GUC_check_errdetail_string = pg_sys::pstrdup(c_text(&report.detail).as_ptr());
        pg_sys::GUC_check_errhint_string = pg_sys::pstrdup(c_text(&report.hint).as_ptr());
    }
    false
}
