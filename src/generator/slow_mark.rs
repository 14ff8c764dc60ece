//! Warns if a mark takes a long time to become durable. While sessions wait, the warning shows what they are waiting
//! for.

use flake::{Nanos, Pending};

use crate::message::mark::{self, WaitCause};
use crate::pg::{sync_standby, timestamp, wal};
use crate::server::{clock, log_limit, shmem};

/// How long a mark may take to become durable before a session that waits for it logs a warning.
const LONG: Nanos = 5_000_000_000;

/// Returns true if a wait of this length should be logged.
fn due(waited: Nanos) -> bool {
    waited >= LONG && shmem::limiters().slow_mark.pass(log_limit::SLOW_MARK_EVERY, 0).is_some()
}

/// Logs a warning if this mark has not become durable for a long time. A session that waits for the mark calls this
/// function.
pub fn waiting(pending: &Pending) {
    let waited = clock::monotonic().saturating_sub(pending.written);
    let cause = match wal::is_flushed(pending.position) {
        _ if waited < LONG => return,
        false => WaitCause::Disk,
        true if sync_standby::acknowledged(pending.position) => return,
        true => WaitCause::Standby,
    };
    if due(waited) {
        let since = timestamp::of(clock::wall().saturating_sub(waited));
        mark::waiting(cause, since, waited, pending.position);
    }
}

/// Logs a warning if the flush of the mark, for which this session has waited since `begun`, took a long time. The
/// session could not log anything during the flush.
pub fn flushed(pending: &Pending, begun: Nanos) {
    let waited = clock::monotonic().saturating_sub(begun);
    if due(waited) {
        mark::flushed(waited, pending.position);
    }
}
