//! The durable high-water mark: the only code that touches where it is kept.
//!
//! It is the progress of replication origin `snowflake_pg`: one number for the whole server, written to WAL by PostgreSQL
//! itself, replayed by standbys that do not have this library, kept by checkpoints and base backups. The origin's row is
//! transactional, its progress is not: the row is made by [`crate::generator::mark_worker`], never in a user's transaction.

use std::ffi::CStr;
use std::time::Duration;

use flake::Mark;
use pgrx::debug1;
use pgrx::pg_sys::XLogRecPtr;

use crate::generator::{shmem, wait};
use crate::message::error::{Error, MarkProblem};
use crate::pg::origin::{self, Mode, Origin};
use crate::pg::wait_event::WaitEvent;
use crate::pg::wal;

/// The origin's name.
const ORIGIN: &CStr = c"snowflake_pg";

/// How long extending waits for a session that changes replication origins, in tries of 10 ms. See [`Guard`].
const TRIES: u32 = 10;

/// The origin, locked until this goes out of scope or the transaction ends.
///
/// What is locked is the origin itself, not the catalog: `DROP SUBSCRIPTION` locks that, and keeps it locked while it talks to
/// a publisher that may not answer. From PostgreSQL 16 on dropping our origin locks the origin, too. Before, it locks the
/// catalog alone: there that lock is taken as well, but only waited for as long as dropping an origin takes.
struct Guard {
    origin: Origin,
    mode: Mode,
    catalog: bool,
}

impl Guard {
    /// Waits for the lock, interruptibly.
    fn take(mode: Mode) -> Result<Guard, MarkProblem> {
        Ok(Guard::acquire(mode, true)?.expect("a lock that was waited for is there"))
    }

    /// `None` if another session has the lock and this session is not to wait for it.
    fn acquire(mode: Mode, wait: bool) -> Result<Option<Guard>, MarkProblem> {
        loop {
            let catalog = lock_catalog(if wait { TRIES } else { 1 });
            let found = find();
            let origin = found.unwrap_or(Origin::ABSENT);
            if wait {
                origin.lock(mode);
            } else if !origin.try_lock(mode) {
                if catalog {
                    origin::unlock_catalog();
                }
                return Ok(None);
            }
            let guard = Guard { origin, mode, catalog };
            // Dropped or made again while waiting: taking a lock makes that seen.
            if find() == found {
                return found.map(|_| Some(guard));
            }
        }
    }
}

/// Locks the catalog against drops of origins; false if another session keeps it locked.
fn lock_catalog(tries: u32) -> bool {
    for attempt in 1..=tries {
        if origin::try_lock_catalog() {
            return true;
        }
        if attempt < tries {
            wait::on_latch(WaitEvent::Mark, Duration::from_millis(10));
        }
    }
    debug1!("snowflake_pg: going on without the lock of pg_replication_origin, which another session keeps");
    false
}

impl Drop for Guard {
    fn drop(&mut self) {
        // An error on its way up ends the transaction, which releases the locks.
        if std::thread::panicking() {
            return;
        }
        self.origin.unlock(self.mode);
        if self.catalog {
            origin::unlock_catalog();
        }
    }
}

/// Reads the mark and passes it on. Meanwhile no session can set it.
pub fn with_mark<R>(load: impl FnOnce(Mark) -> R) -> R {
    let locked = Guard::take(Mode::Shared).and_then(|guard| Ok((progress(guard.origin)?, guard)));
    let (mark, guard) = locked.unwrap_or_else(|problem| Error::MarkMissing { problem }.raise());
    shmem::origin_state().note_made();
    let result = load(mark);
    drop(guard);
    result
}

/// Reads the mark, which another session may change at the same time.
pub fn read() -> Result<Mark, MarkProblem> {
    progress(find()?)
}

/// The result of an attempt to raise the mark.
pub enum Raised {
    /// Written; the end of the WAL record, which is not flushed yet.
    To(XLogRecPtr),
    /// It is not wanted any more.
    Unwanted,
    /// Another session changes the origin, and this one does not wait for that.
    Locked,
}

/// Raises the mark to `mark`, if it is not there yet and `wanted` still gives what it must be by now. Waits for a session that
/// changes the origin if `wait` is set.
pub fn raise(mark: Mark, wait: bool, wanted: impl FnOnce() -> Option<Mark>) -> Result<Raised, MarkProblem> {
    let Some(guard) = Guard::acquire(Mode::Shared, wait)? else {
        return Ok(Raised::Locked);
    };
    let Some(least) = wanted() else {
        return Ok(Raised::Unwanted);
    };
    // A mark that was taken away or set back is not silently made good: it may have been on disk like that.
    if progress(guard.origin)? < least {
        return Err(MarkProblem::SetBack);
    }
    write(guard.origin, mark, false).map(Raised::To)
}

/// Sets the mark, downwards too, after `check` has seen the mark that was known and has not raised an error. While it runs
/// no session loads or raises the mark. Returns the end of the WAL record, which is on disk.
pub fn set(mark: Mark, check: impl FnOnce(Option<Mark>)) -> XLogRecPtr {
    let guard = Guard::take(Mode::Exclusive).unwrap_or_else(|problem| Error::MarkMissing { problem }.raise());
    check(progress(guard.origin).ok());
    let written = write(guard.origin, mark, true).unwrap_or_else(|problem| Error::MarkMissing { problem }.raise());
    drop(guard);
    wal::flush(written);
    written
}

/// Makes the origin, with a mark that says that nothing was issued, unless it exists; true if it did not. In a
/// transaction that writes nothing else.
pub fn make() -> Result<bool, MarkProblem> {
    match find() {
        Ok(origin) => progress(origin).map(|_| false),
        Err(_) => {
            wal::flush(write(Origin::create(ORIGIN), Mark::NOTHING_ISSUED, false)?);
            Ok(true)
        }
    }
}

/// True if the origin exists.
pub fn exists() -> bool {
    origin::see_changes();
    find().is_ok()
}

fn find() -> Result<Origin, MarkProblem> {
    Origin::find(ORIGIN).ok_or_else(|| shmem::origin_state().problem())
}

fn progress(origin: Origin) -> Result<Mark, MarkProblem> {
    Mark::stored(origin.progress()).ok_or(MarkProblem::NoProgress)
}

fn write(origin: Origin, mark: Mark, backward: bool) -> Result<XLogRecPtr, MarkProblem> {
    origin.advance(mark.value(), backward).map_err(|origin::InUse| MarkProblem::InUse)
}
