//! The durable high-water mark: the only code that touches where it is kept.
//!
//! It is the progress of a replication origin named for us: one number for the whole server, written to WAL by PostgreSQL
//! itself, replayed by standbys that need no library of ours, kept by checkpoints and base backups. The origin's row is
//! transactional, its progress is not: the row is made by [`crate::keeper`], never in a user's transaction.

use std::time::Duration;

use flake::Mark;
use pgrx::debug1;
use pgrx::pg_sys::{self, RepOriginId, XLogRecPtr};

use crate::failure::{Failure, MarkProblem};
use crate::keeper;
use crate::wait::{self, Wait};

/// The origin's name.
const ORIGIN: &std::ffi::CStr = c"snowflake_pg";

/// `InvalidRepOriginId` of `replication/origin.h`, and the progress of an origin that has none.
const NONE: u16 = 0;

/// The lock of the catalog that conflicts with the one that dropping an origin takes before 16.
const CATALOG_LOCK: pg_sys::LOCKMODE = pg_sys::RowExclusiveLock as pg_sys::LOCKMODE;

/// How long extending waits for who changes replication origins, in tries of 10 ms. See [`Guard`].
const TRIES: u32 = 10;

/// The origin, locked until this goes out of scope or the transaction ends.
///
/// What is locked is the origin itself, not the catalog: `DROP SUBSCRIPTION` locks that, and keeps it locked while it talks to
/// a publisher that may not answer. From PostgreSQL 16 on dropping our origin locks the origin, too. Before, it locks the
/// catalog alone: there that lock is taken as well, but only waited for as long as dropping an origin takes.
struct Guard {
    origin: RepOriginId,
    mode: pg_sys::LOCKMODE,
    catalog: bool,
}

impl Guard {
    #[allow(unsafe_code)]
    fn take(mode: u32) -> Result<Guard, MarkProblem> {
        let mode = mode as pg_sys::LOCKMODE;
        loop {
            let catalog = lock_catalog();
            let found = origin();
            let guard = Guard { origin: found.unwrap_or(NONE), mode, catalog };
            // SAFETY: in a transaction, as in any SQL function. The wait is interruptible.
            unsafe { pg_sys::LockSharedObject(pg_sys::ReplicationOriginRelationId, guard.object(), 0, mode) };
            // Dropped or made anew while waiting: taking a lock makes that seen.
            if origin() == found {
                return found.map(|_| guard);
            }
        }
    }

    fn object(&self) -> pg_sys::Oid {
        pg_sys::Oid::from(u32::from(self.origin))
    }
}

/// Locks the catalog against drops of origins; false where somebody keeps it locked.
#[allow(unsafe_code)]
fn lock_catalog() -> bool {
    for _ in 0..TRIES {
        // SAFETY: a catalog that always exists, in a transaction, as in any SQL function.
        if unsafe { pg_sys::ConditionalLockRelationOid(pg_sys::ReplicationOriginRelationId, CATALOG_LOCK) } {
            return true;
        }
        wait::on_latch(Wait::Mark, Duration::from_millis(10));
    }
    debug1!("snowflake_pg: going on without the lock of pg_replication_origin, which somebody keeps");
    false
}

impl Drop for Guard {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // An error on its way up ends the transaction, which releases the locks.
        if std::thread::panicking() {
            return;
        }
        // SAFETY: taken by this process in this transaction.
        unsafe {
            pg_sys::UnlockSharedObject(pg_sys::ReplicationOriginRelationId, self.object(), 0, self.mode);
            if self.catalog {
                pg_sys::UnlockRelationOid(pg_sys::ReplicationOriginRelationId, CATALOG_LOCK);
            }
        }
    }
}

/// Reads the mark and passes it on, while nobody can set it.
pub fn with_mark<R>(load: impl FnOnce(Mark) -> R) -> R {
    let locked = Guard::take(pg_sys::RowExclusiveLock).and_then(|guard| Ok((progress(guard.origin)?, guard)));
    let (mark, guard) = locked.unwrap_or_else(|problem| Failure::MarkMissing { problem }.raise());
    keeper::origin_seen();
    let result = load(mark);
    drop(guard);
    result
}

/// Reads the mark, which another may change at the same time.
pub fn read() -> Result<Mark, MarkProblem> {
    progress(origin()?)
}

/// Raises the mark to `mark`, if it is not there yet and `wanted` still gives what it must be by now; returns the end of the
/// WAL record, which is not flushed yet, `None` where it is not wanted.
pub fn raise(mark: Mark, wanted: impl FnOnce() -> Option<Mark>) -> Result<Option<XLogRecPtr>, MarkProblem> {
    let guard = Guard::take(pg_sys::RowExclusiveLock)?;
    let Some(least) = wanted() else {
        return Ok(None);
    };
    // A mark that somebody took away or set back is not silently made good: it may have been on disk like that.
    if progress(guard.origin)? < least {
        return Err(MarkProblem::SetBack);
    }
    Ok(Some(write(guard.origin, mark, false)))
}

/// Sets the mark, downwards too, after `check` has seen the mark that was known and has not raised an error. While it runs
/// nobody loads or raises the mark. Returns the end of the WAL record, which is on disk.
pub fn set(mark: Mark, check: impl FnOnce(Option<Mark>)) -> XLogRecPtr {
    let guard = Guard::take(pg_sys::AccessExclusiveLock);
    let guard = guard.unwrap_or_else(|problem| Failure::MarkMissing { problem }.raise());
    check(progress(guard.origin).ok());
    let written = write(guard.origin, mark, true);
    drop(guard);
    flush(written);
    written
}

/// Makes the origin, with a mark that says that nothing was issued, unless it is there; true where it was not. In a
/// transaction that writes nothing else.
#[allow(unsafe_code)]
pub fn make() -> Result<bool, MarkProblem> {
    match origin() {
        Ok(origin) => progress(origin).map(|_| false),
        Err(_) => {
            // SAFETY: in a transaction; the name is a C string.
            let origin = unsafe { pg_sys::replorigin_create(ORIGIN.as_ptr()) };
            flush(write(origin, Mark::NOTHING_ISSUED, false));
            Ok(true)
        }
    }
}

/// True where the origin exists.
#[allow(unsafe_code)]
pub fn exists() -> bool {
    // SAFETY: in a transaction. Without it a session would not see what another has changed until it takes a lock.
    unsafe { pg_sys::AcceptInvalidationMessages() };
    origin().is_ok()
}

/// Waits until the WAL up to `lsn` is on disk, as a COMMIT would.
#[allow(unsafe_code)]
pub fn flush(lsn: XLogRecPtr) {
    // SAFETY: the end of a record that this process has written.
    unsafe { pg_sys::XLogFlush(lsn) };
}

#[allow(unsafe_code)]
fn origin() -> Result<RepOriginId, MarkProblem> {
    // SAFETY: a look into the catalog cache, in a transaction; the name is a C string.
    match unsafe { pg_sys::replorigin_by_name(ORIGIN.as_ptr(), true) } {
        NONE => Err(keeper::problem()),
        origin => Ok(origin),
    }
}

#[allow(unsafe_code)]
fn progress(origin: RepOriginId) -> Result<Mark, MarkProblem> {
    // SAFETY: reads shared memory under locks of its own.
    let progress = unsafe { pg_sys::replorigin_get_progress(origin, false) };
    Mark::stored(progress).ok_or(MarkProblem::NoProgress)
}

#[allow(unsafe_code)]
fn write(origin: RepOriginId, mark: Mark, downwards: bool) -> XLogRecPtr {
    // SAFETY: the origin exists, and a lock of this process keeps it from being dropped. The end of the record is this
    // process's own variable. (The insert position would not do: it can lie behind the next page's header, where there is
    // nothing to flush yet.)
    unsafe {
        pg_sys::replorigin_advance(origin, mark.value(), 0, downwards, true);
        pg_sys::XactLastRecEnd
    }
}
