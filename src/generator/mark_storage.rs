//! The durable high-water mark. No other file reads or writes the storage of the mark.
//!
//! The mark is stored as the progress of replication origin `snowflake_pg`, which is one number for the entire server.
//! PostgreSQL itself writes the progress to WAL. Standbys replay it even if they do not have this library, and
//! checkpoints and base backups preserve it. The origin's row is transactional, but its progress is not. For this
//! reason, [`crate::workers::mark_worker`] creates the row, and a user's transaction never does.

use std::ffi::CStr;
use std::time::Duration;

use flake::Mark;
use pgrx::debug1;
use pgrx::pg_sys::XLogRecPtr;

use crate::faults::{self, Fault};
use crate::generator::witness;
use crate::message::mark::MarkProblem;
use crate::message::report::Report;
use crate::pg::replication_origin::{self, Mode, Origin};
use crate::pg::wait_event::WaitEvent;
use crate::pg::wal;
use crate::server::{clock, shmem, wait};

const ORIGIN: &CStr = c"snowflake_pg";

/// How often an extension tries to lock the catalog while another session is changing replication origins. The attempts
/// are 10 ms apart. See [`LockedOrigin`].
const TRIES: u32 = 10;

/// How long a session waits for the background worker after a server's first start. `POLL` is the interval between
/// checks.
const PATIENCE: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(10);

/// The origin, locked until this value goes out of scope or the transaction ends.
///
/// The lock is on the origin itself instead of the catalog. `DROP SUBSCRIPTION` locks the catalog and keeps the lock
/// while it communicates with a publisher, which may not respond. Starting with PostgreSQL 16, dropping this
/// extension's origin also locks the origin. Earlier versions lock only the catalog. This guard therefore also takes
/// the lock on the catalog, but it waits for that lock only as long as it takes to drop an origin.
struct LockedOrigin {
    origin: Origin,
    mode: Mode,
    catalog: bool,
}

impl LockedOrigin {
    /// Takes the lock. The wait can be interrupted.
    fn take(mode: Mode) -> Result<LockedOrigin, MarkProblem> {
        Ok(LockedOrigin::acquire(mode, true)?.expect("a lock that was waited for is there"))
    }

    /// Takes the lock. Returns `None` if `wait` is false and another session holds the lock.
    fn acquire(mode: Mode, wait: bool) -> Result<Option<LockedOrigin>, MarkProblem> {
        loop {
            let catalog = lock_catalog(if wait { TRIES } else { 1 });
            let found = find();
            let origin = found.unwrap_or(Origin::ABSENT);
            if wait {
                origin.lock(mode);
            } else if !origin.try_lock(mode) {
                if catalog {
                    replication_origin::unlock_catalog();
                }
                return Ok(None);
            }
            let guard = LockedOrigin { origin, mode, catalog };
            // The origin may have been dropped or created while this session waited. Taking a lock makes such a change
            // visible.
            if find() == found {
                return found.map(|_| Some(guard));
            }
        }
    }
}

/// Locks the catalog so that no origin can be dropped. Returns false if another session holds the lock during all
/// attempts.
fn lock_catalog(tries: u32) -> bool {
    for attempt in 1..=tries {
        if replication_origin::try_lock_catalog() {
            return true;
        }
        if attempt < tries {
            wait::on_latch(WaitEvent::Mark, Duration::from_millis(10));
        }
    }
    debug1!("snowflake_pg: continuing without the lock on pg_replication_origin, which another session holds");
    false
}

impl Drop for LockedOrigin {
    fn drop(&mut self) {
        // After an error, the end of the transaction releases the locks.
        if std::thread::panicking() {
            return;
        }
        self.origin.unlock(self.mode);
        if self.catalog {
            replication_origin::unlock_catalog();
        }
    }
}

/// Reads the mark and passes it to `load`. No session can set the mark while `load` runs. Because a lock is held, `load`
/// neither raises an error nor logs anything: either can be sent to a client that does not read.
pub fn with_mark<R>(load: impl FnOnce(Mark) -> R) -> R {
    let locked = LockedOrigin::take(Mode::Shared).and_then(|guard| Ok((progress(guard.origin)?, guard)));
    let (mark, guard) = locked.unwrap_or_else(|problem| problem.raise());
    shmem::origin_state().note_made();
    let result = load(faults::loaded_mark(mark));
    drop(guard);
    result
}

/// Reads the mark. Another session may change it at the same time.
pub fn read() -> Result<Mark, MarkProblem> {
    progress(find()?)
}

/// Returns true if the stored mark is `least` or higher.
pub fn covers(least: Mark) -> bool {
    faults::any_mark_covers() || read().is_ok_and(|mark| mark >= least)
}

/// The result of an attempt to raise the mark.
pub enum Raised {
    /// The mark was written. The value is the end of the WAL record, which is not flushed yet.
    To(XLogRecPtr),
    /// The mark is no longer needed.
    Unwanted,
    /// Another session is changing the origin, and this session does not wait for it.
    Locked,
}

/// Raises the mark to `mark`. `wanted` returns the minimum value that the stored mark must have by now, or `None` if
/// the mark is no longer needed. If `wait` is true, this function waits for a session that is changing the origin.
pub fn raise(mark: Mark, wait: bool, wanted: impl FnOnce() -> Option<Mark>) -> Result<Raised, MarkProblem> {
    let mark = faults::mark_behind(mark);
    let Some(guard) = LockedOrigin::acquire(Mode::Shared, wait)? else { return Ok(Raised::Locked) };
    let Some(least) = wanted() else { return Ok(Raised::Unwanted) };
    // If the mark was removed or lowered, it is not repaired silently, because the change may have reached the disk.
    if progress(guard.origin)? < least {
        return Err(MarkProblem::SetBack);
    }
    let written = write(guard.origin, mark, false)?;
    // The lock keeps `set` from lowering the mark in the witness at the same time.
    witness::raise(mark);
    drop(guard);
    witness::check();
    Ok(Raised::To(written))
}

/// Sets the mark and the mark in the witness, possibly to a lower value. `decide` receives the previous mark and
/// returns the new one. Because a lock is held, `decide` neither raises an error nor logs anything. No session loads or
/// raises the mark while this function runs. Returns the end of the WAL record, which has been flushed.
pub fn set(decide: impl FnOnce(Option<Mark>) -> Result<Mark, Report>) -> Result<XLogRecPtr, Report> {
    let guard = LockedOrigin::take(Mode::Exclusive).map_err(|problem| problem.report())?;
    let mark = decide(progress(guard.origin).ok())?;
    let written = write(guard.origin, mark, true).map_err(|problem| problem.report())?;
    witness::set(mark);
    drop(guard);
    wal::flush(written);
    Ok(written)
}

/// Changes the state's assignment from number `from` to number `to` and unloads the state. No session loads or raises
/// the mark while this function runs. Returns false if the assignment is no longer `from`.
pub fn assign(from: u64, to: u64) -> bool {
    let guard = LockedOrigin::take(Mode::Exclusive).unwrap_or_else(|problem| problem.raise());
    let assigned = shmem::state().assign(from, to);
    drop(guard);
    // Wakes the sessions that are waiting for an extension of the previous generation.
    shmem::extended().wake_all();
    assigned
}

/// Creates the origin with a mark that indicates that no ID has been issued. Returns false if the origin already
/// exists. The transaction must not write anything else.
pub fn make() -> Result<bool, MarkProblem> {
    match find() {
        Ok(origin) => progress(origin).map(|_| false),
        Err(_) => {
            wal::flush(write(Origin::create(ORIGIN), Mark::NOTHING_ISSUED, false)?);
            Ok(true)
        }
    }
}

pub fn exists() -> bool {
    replication_origin::see_changes();
    find().is_ok()
}

/// Waits until the origin exists. After a server's first start, the background worker may not have created it yet.
pub fn wait_for_origin() {
    if faults::on(Fault::MarkMadeByUser) {
        let _ = make();
    }
    let begun = clock::monotonic();
    while !exists() && shmem::origin_state().problem() == MarkProblem::NotMade {
        debug1!("snowflake_pg: waiting for the background worker to create the replication origin");
        if clock::monotonic().saturating_sub(begun) > PATIENCE.as_nanos() as u64 {
            return;
        }
        wait::on_latch(WaitEvent::Mark, POLL);
    }
}

fn find() -> Result<Origin, MarkProblem> {
    Origin::find(ORIGIN).ok_or_else(|| shmem::origin_state().problem())
}

fn progress(origin: Origin) -> Result<Mark, MarkProblem> {
    Mark::stored(origin.progress()).ok_or(MarkProblem::NoProgress)
}

fn write(origin: Origin, mark: Mark, backward: bool) -> Result<XLogRecPtr, MarkProblem> {
    origin.advance(mark.value(), backward).map_err(|replication_origin::InUse| MarkProblem::InUse)
}
