//! A replication origin, identified by its name: its row in the catalog, its progress, and the locks that keep other
//! sessions from dropping it or from changing its progress. All functions in this module are called in a transaction,
//! as in any SQL function.
#![allow(unsafe_code)]

use std::ffi::CStr;

use pgrx::pg_sys::{self, XLogRecPtr};
use pgrx::{PgSqlErrorCode, PgTryBuilder};

use crate::pg::versions::OriginId;

/// The value of `InvalidRepOriginId` in `replication/origin.h`.
const NONE: OriginId = 0;

/// The lock mode for the catalog. It conflicts with the lock that PostgreSQL versions before 16 take to drop an origin.
const CATALOG_LOCK: pg_sys::LOCKMODE = pg_sys::RowExclusiveLock as pg_sys::LOCKMODE;

/// A replication origin, or [`Origin::ABSENT`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin(OriginId);

/// The lock mode for an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Several sessions that advance the progress can hold the lock at the same time.
    Shared = pg_sys::RowExclusiveLock as isize,
    /// Only one session can hold the lock.
    Exclusive = pg_sys::AccessExclusiveLock as isize,
}

/// Another session has set up the origin for its own use. Until that session ends, no other session can change the
/// progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InUse;

impl Mode {
    fn lock(self) -> pg_sys::LOCKMODE {
        self as pg_sys::LOCKMODE
    }
}

impl Origin {
    /// Represents an origin that does not exist. Callers can only lock this value.
    pub const ABSENT: Origin = Origin(NONE);

    /// Returns the origin with this name.
    pub fn find(name: &CStr) -> Option<Origin> {
        // SAFETY: the call reads the catalog cache in a transaction, and the name is a C string.
        Some(unsafe { pg_sys::replorigin_by_name(name.as_ptr(), true) }).filter(|id| *id != NONE).map(Origin)
    }

    pub fn create(name: &CStr) -> Origin {
        // SAFETY: the call is made in a transaction, and the name is a C string.
        Origin(unsafe { pg_sys::replorigin_create(name.as_ptr()) })
    }

    /// Returns the progress, or 0 if there is none.
    pub fn progress(self) -> XLogRecPtr {
        // SAFETY: the call reads shared memory under its own locks.
        unsafe { pg_sys::replorigin_get_progress(self.0, false) }
    }

    /// Sets the progress, which is lowered only if `backward` is true. Returns the end of the WAL record, which has not
    /// been flushed yet. The caller has found or created the origin and has locked it.
    pub fn advance(self, progress: XLogRecPtr, backward: bool) -> Result<XLogRecPtr, InUse> {
        // SAFETY: the origin exists, and a lock held by this process prevents it from being dropped. The end of the
        // record is a variable of this process. (The insert position cannot be used instead, because it can be after
        // the header of the next page, where there is nothing to flush yet.)
        PgTryBuilder::new(|| unsafe {
            pg_sys::replorigin_advance(self.0, progress, 0, backward, true);
            Ok(pg_sys::XactLastRecEnd)
        })
        .catch_when(PgSqlErrorCode::ERRCODE_OBJECT_IN_USE, |_| {
            // SAFETY: the function raises this error before it changes anything, while it holds two of its own locks.
            // SQL functions are called without LWLocks, so there are no other locks to release.
            unsafe { pg_sys::LWLockReleaseAll() };
            Err(InUse)
        })
        .execute()
    }

    /// Locks the origin. The wait can be interrupted.
    pub fn lock(self, mode: Mode) {
        // SAFETY: the call is made in a transaction, as in any SQL function.
        unsafe { pg_sys::LockSharedObject(pg_sys::ReplicationOriginRelationId, self.object(), 0, mode.lock()) };
    }

    /// Locks the origin without waiting. Returns false if another session holds a conflicting lock.
    pub fn try_lock(self, mode: Mode) -> bool {
        let tag = pg_sys::LOCKTAG {
            locktag_field1: 0,
            locktag_field2: pg_sys::ReplicationOriginRelationId.to_u32(),
            locktag_field3: self.object().to_u32(),
            locktag_field4: 0,
            locktag_type: pg_sys::LockTagType::LOCKTAG_OBJECT as u8,
            locktag_lockmethodid: pg_sys::DEFAULT_LOCKMETHOD as u8,
        };
        // SAFETY: the calls are made in a transaction. This code does the same as LockSharedObject, but does not wait.
        // PostgreSQL provides a function for this purpose only in version 17 and later.
        unsafe {
            let locked = pg_sys::LockAcquire(&raw const tag, mode.lock(), false, true);
            if locked == pg_sys::LockAcquireResult::LOCKACQUIRE_NOT_AVAIL {
                return false;
            }
            pg_sys::AcceptInvalidationMessages();
            true
        }
    }

    /// Releases the lock on the origin that this process took in this transaction.
    pub fn unlock(self, mode: Mode) {
        // SAFETY: the caller has taken the lock. If it has not, PostgreSQL only warns.
        unsafe { pg_sys::UnlockSharedObject(pg_sys::ReplicationOriginRelationId, self.object(), 0, mode.lock()) };
    }

    fn object(self) -> pg_sys::Oid {
        pg_sys::Oid::from(u32::from(self.0))
    }
}

/// Locks the catalog of origins so that no origin is dropped. Returns false if another session holds a conflicting
/// lock.
pub fn try_lock_catalog() -> bool {
    // SAFETY: the catalog always exists, and the call is made in a transaction, as in any SQL function.
    unsafe { pg_sys::ConditionalLockRelationOid(pg_sys::ReplicationOriginRelationId, CATALOG_LOCK) }
}

/// Releases the lock on the catalog that this process took in this transaction.
pub fn unlock_catalog() {
    // SAFETY: the caller has taken the lock. If it has not, PostgreSQL only warns.
    unsafe { pg_sys::UnlockRelationOid(pg_sys::ReplicationOriginRelationId, CATALOG_LOCK) };
}

/// Makes catalog changes of other sessions visible to this session. Taking a lock has the same effect.
pub fn see_changes() {
    // SAFETY: the call is made in a transaction.
    unsafe { pg_sys::AcceptInvalidationMessages() };
}
