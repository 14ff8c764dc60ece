//! The least that a server needs for an ID: `make bench-against` measures this function beside `snowflake_nextval`. It is part of the
//! library only with the cargo feature `baseline`.

use std::sync::atomic::{AtomicU64, Ordering};

use pgrx::prelude::*;

use crate::server::clock;

/// The time of the previous call.
static LAST: AtomicU64 = AtomicU64::new(0);

/// Reads the clock once, exchanges one atomic number, and returns the number that was there.
#[pg_extern(volatile, parallel_safe)]
fn snowflake_baseline() -> i64 {
    LAST.swap(clock::monotonic(), Ordering::AcqRel).cast_signed()
}
