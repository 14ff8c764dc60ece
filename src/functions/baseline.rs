//! The minimum work that a server needs to issue an ID. `make bench-against` compares `snowflake_nextval` with this
//! function. It is part of the library only if the Cargo feature `baseline` is enabled.

use std::sync::atomic::{AtomicU64, Ordering};

use pgrx::prelude::*;

use crate::server::clock;

/// The time of the previous call.
static LAST: AtomicU64 = AtomicU64::new(0);

/// Reads the clock once, replaces one atomic number, and returns the previous value of that number.
#[pg_extern(volatile, parallel_safe)]
fn snowflake_baseline() -> i64 {
    LAST.swap(clock::monotonic(), Ordering::AcqRel).cast_signed()
}
