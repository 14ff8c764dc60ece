//! The durable high-water mark: the only code that touches where it is kept.
//!
//! It is the progress of a replication origin named for us: one number for the whole server, written to WAL by PostgreSQL
//! itself, replayed by standbys that need no library of ours, kept by checkpoints and base backups. The origin's row is
//! transactional, its progress is not: the row is made by [`crate::keeper`], never in a user's transaction.

use flake::Mark;
use pgrx::pg_sys::{self, RepOriginId, XLogRecPtr};

use crate::failure::{Failure, MarkProblem};
use crate::keeper;

/// The origin's name.
const ORIGIN: &std::ffi::CStr = c"snowflake_pg";

/// `InvalidRepOriginId` of `replication/origin.h`, and the progress of an origin that has none.
const NONE: u16 = 0;

/// A lock that keeps the origin from being dropped, and the mark from being set, until it goes out of scope, or the
/// transaction ends.
struct Guard(pg_sys::LOCKMODE);

impl Guard {
    /// Waits, interruptibly, for who drops the origin or sets the mark.
    #[allow(unsafe_code)]
    fn take(mode: u32) -> Guard {
        let mode = mode as pg_sys::LOCKMODE;
        // SAFETY: a catalog that always exists, in a transaction, as in any SQL function.
        unsafe { pg_sys::LockRelationOid(pg_sys::ReplicationOriginRelationId, mode) };
        Guard(mode)
    }
}

impl Drop for Guard {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // An error on its way up ends the transaction, which releases the lock.
        if !std::thread::panicking() {
            // SAFETY: taken by this process in this transaction.
            unsafe { pg_sys::UnlockRelationOid(pg_sys::ReplicationOriginRelationId, self.0) };
        }
    }
}

/// Reads the mark and passes it on, while nobody can set it or do the same.
pub fn with_mark<R>(load: impl FnOnce(Mark) -> R) -> R {
    let guard = Guard::take(pg_sys::ShareRowExclusiveLock);
    let origin = origin().unwrap_or_else(|problem| Failure::MarkMissing { problem }.raise());
    keeper::origin_seen();
    let mark = progress(origin).unwrap_or_else(|problem| Failure::MarkMissing { problem }.raise());
    let result = load(mark);
    drop(guard);
    result
}

/// Raises the mark to `mark`, if it is not there yet and `wanted` still gives what it must be by now; returns the end of the
/// WAL record, which is not flushed yet.
pub fn raise(mark: Mark, wanted: impl FnOnce() -> Option<Mark>) -> Option<XLogRecPtr> {
    // Lets others raise it, and keeps everybody from dropping the origin: from 16 on that takes a RowExclusiveLock only.
    let guard = Guard::take(pg_sys::ShareLock);
    let written = wanted().map(|least| {
        let checked = origin().and_then(|origin| match progress(origin)? < least {
            true => Err(MarkProblem::SetBack),
            false => Ok(origin),
        });
        // A mark that somebody took away or set back is not silently made good: it may have been on disk like that.
        match checked {
            Ok(origin) => write(origin, mark, false),
            Err(problem) => Failure::MarkMissing { problem }.raise(),
        }
    });
    drop(guard);
    written
}

/// Sets the mark, downwards too, after `check` has seen the mark that was known and has not raised an error. While it runs
/// nobody loads or raises the mark.
pub fn set(mark: Mark, check: impl FnOnce(Option<Mark>)) -> XLogRecPtr {
    let guard = Guard::take(pg_sys::ExclusiveLock);
    let origin = origin().unwrap_or_else(|problem| Failure::MarkMissing { problem }.raise());
    check(progress(origin).ok());
    let written = write(origin, mark, true);
    flush(written);
    drop(guard);
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
pub fn exists() -> bool {
    // Taking a lock is what makes a session see that another has changed the catalog.
    let guard = Guard::take(pg_sys::AccessShareLock);
    let found = origin().is_ok();
    drop(guard);
    found
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
