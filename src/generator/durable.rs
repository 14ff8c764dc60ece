//! Determines when a mark is durable: when it has been flushed to this server's disk and acknowledged by the
//! synchronous standby, if one is configured.

use std::time::Duration;

use flake::Nanos;
use pgrx::check_for_interrupts;
use pgrx::pg_sys::XLogRecPtr;

use crate::faults;
use crate::pg::wait_event::WaitEvent;
use crate::pg::{sync_standby, wal};
use crate::server::{clock, wait};

/// Flushes the WAL up to `position`. Returns true if the synchronous standby has acknowledged the WAL up to `position`,
/// or if no synchronous standby is configured.
pub fn is_durable(position: XLogRecPtr) -> bool {
    if faults::durable_early(|pause| wait::on_latch(WaitEvent::Mark, pause)) {
        return true;
    }
    wal::flush(position);
    sync_standby::acknowledged(position)
}

/// Waits until the synchronous standby has acknowledged the WAL up to `position`, or until no synchronous standby is
/// configured.
pub fn acknowledged(position: XLogRecPtr) {
    let begun = clock::monotonic();
    while !sync_standby::acknowledged(position) {
        wait_for_standby(flake::pause(begun, clock::monotonic()));
    }
}

/// Sleeps for `pause`. Raises an error if the statement is cancelled.
pub fn wait_for_standby(pause: Nanos) {
    wait::sleep(WaitEvent::Mark, Duration::from_nanos(pause));
    if !faults::outlasts_cancel() {
        check_for_interrupts!();
    }
}
