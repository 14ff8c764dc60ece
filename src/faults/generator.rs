//! Faults in the generator, except for those in its [`super::State`].
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flake::Mark;

use super::{Fault, on};

/// How far below its proper value a mark is written if [`Fault::MarkBehind`] is on. In the default layout, this is one
/// minute.
const BEHIND: u64 = 60_000 << 22;

/// True if [`Fault::PublishAfterCancel`] is on and a cancel request has ended a wait for the synchronous standby.
static CANCELLED: AtomicBool = AtomicBool::new(false);

/// Returns the last ID plus 1 instead of `id` if [`Fault::RunIntoNodeBits`] is on.
#[inline(always)]
pub fn counted_on(id: i64, last: impl FnOnce() -> Option<i64>) -> i64 {
    if on(Fault::RunIntoNodeBits) { last().map_or(id, |last| last + 1) } else { id }
}

/// Returns a mark that indicates that no ID has been issued if [`Fault::MarkNotLoaded`] or [`Fault::StatePerBackend`]
/// is on. Logs a message if [`Fault::LoggedLocked`] is on.
pub fn loaded_mark(mark: Mark) -> Mark {
    if on(Fault::LoggedLocked) {
        pgrx::log!("snowflake_pg: the mark is locked");
    }
    if on(Fault::MarkNotLoaded) || on(Fault::StatePerBackend) { Mark::NOTHING_ISSUED } else { mark }
}

/// Returns a mark below the IDs that it should cover if [`Fault::MarkBehind`] is on.
pub fn mark_behind(mark: Mark) -> Mark {
    match on(Fault::MarkBehind) {
        true => Mark::stored(mark.value().saturating_sub(BEHIND)).unwrap_or(Mark::NOTHING_ISSUED),
        false => mark,
    }
}

/// Returns true if [`Fault::MarkBehind`] or [`Fault::PendingTrusted`] is on. A reservation is then published regardless
/// of the stored mark.
pub fn any_mark_covers() -> bool {
    on(Fault::MarkBehind) || on(Fault::PendingTrusted)
}

/// Returns a mark that indicates that no ID has been issued if [`Fault::StartIgnored`] is on.
pub fn floor(mark: Mark) -> Mark {
    if on(Fault::StartIgnored) { Mark::NOTHING_ISSUED } else { mark }
}

/// Sleeps before a flush, for two seconds if [`Fault::SlowDisk`] is on and for six seconds if [`Fault::StuckDisk`] is
/// on. `sleep` can be cancelled. Returns true if a mark counts as durable without a flush, because
/// [`Fault::PublishBeforeFlush`] is on or because the wait for the standby was cancelled (see [`outlasts_cancel`]).
pub fn durable_early(sleep: impl Fn(Duration)) -> bool {
    let pauses = match () {
        () if on(Fault::SlowDisk) => 40,
        () if on(Fault::StuckDisk) => 120,
        () => 0,
    };
    for _ in 0..pauses {
        sleep(Duration::from_millis(50));
    }
    on(Fault::PublishBeforeFlush) || on(Fault::PublishAfterCancel) && CANCELLED.swap(false, Ordering::Relaxed)
}

/// Returns true if [`Fault::PublishAfterCancel`] is on and a cancel request has arrived. The request then ends the wait
/// for the synchronous standby without an error.
pub fn outlasts_cancel() -> bool {
    // SAFETY: the flag is a plain variable of this process.
    let cancelled = on(Fault::PublishAfterCancel) && unsafe { pgrx::pg_sys::InterruptPending } != 0;
    cancelled && !CANCELLED.swap(true, Ordering::Relaxed)
}
