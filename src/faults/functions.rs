//! Faults in the SQL functions.
#![allow(unsafe_code)]

use flake::IdFormat;
use pgrx::prelude::*;

use super::{Fault, on};

/// Exists while a function reads the elements of an array argument.
pub struct ReadingArray;

/// Copies an array argument if [`Fault::ArgumentCopied`] is on. If [`Fault::CancelWhileReading`] or
/// [`Fault::DeafReading`] is on, sets the same flags as the signal handler for cancel requests. If
/// [`Fault::DeafReading`] is on, also reads all elements before anything checks for the request.
pub fn reading_array(array: Option<&Array<'_, i32>>) -> ReadingArray {
    let elements = || array.into_iter().flat_map(|array| array.iter()).flatten();
    if on(Fault::ArgumentCopied) {
        std::hint::black_box(elements().collect::<Vec<i32>>());
    }
    if on(Fault::CancelWhileReading) || on(Fault::DeafReading) {
        // SAFETY: these are flags of this process, which PostgreSQL's signal handler sets in the same way.
        unsafe {
            pg_sys::QueryCancelPending = 1;
            pg_sys::InterruptPending = 1;
        }
    }
    if on(Fault::DeafReading) {
        std::hint::black_box(elements().count());
        drop(ReadingArray);
    }
    ReadingArray
}

impl Drop for ReadingArray {
    /// Logs that nothing checked for the cancel request.
    fn drop(&mut self) {
        if (on(Fault::CancelWhileReading) || on(Fault::DeafReading)) && !std::thread::panicking() {
            pgrx::log!("snowflake_pg: read to the end");
        }
    }
}

/// Waits for advisory lock 1 if [`Fault::SlowName`] is on.
#[inline(always)]
pub fn named() {
    if on(Fault::SlowName) {
        Spi::run("SELECT pg_catalog.pg_advisory_xact_lock_shared(1)").expect("PostgreSQL raises the errors of a query");
    }
}

/// Returns an empty tweak if [`Fault::TweakIgnored`] is on.
#[inline(always)]
pub fn tweak_used(tweak: &[u8]) -> &[u8] {
    if on(Fault::TweakIgnored) { &[] } else { tweak }
}

/// Returns the time of an ID relative to the Unix epoch instead of the epoch of the format if
/// [`Fault::DecodeIgnoresEpoch`] is on. Times are in microseconds.
#[inline(always)]
pub fn without_epoch(instant: i128, format: &IdFormat) -> i128 {
    if on(Fault::DecodeIgnoresEpoch) { instant - format.instant(0) } else { instant }
}
