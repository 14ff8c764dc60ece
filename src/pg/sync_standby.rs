//! Checks in PostgreSQL's shared memory what the synchronous standby has acknowledged. The wait for it is in
//! `generator/durable.rs`.
//!
//! `SyncRepWaitForLSN` cannot be used. It returns without an error if the wait is cancelled, and it returns immediately
//! if `synchronous_commit` is off or local in the session.
#![allow(unsafe_code)]

use pgrx::pg_sys::{self, LWLockMode, XLogRecPtr};

use crate::pg::versions;

/// Returns true if the synchronous standby has flushed the WAL up to `lsn`, or if no synchronous standby is configured.
pub fn acknowledged(lsn: XLogRecPtr) -> bool {
    // SAFETY: the control structure and the lock are in shared memory, to which every backend is attached before its
    // first statement. The lock is held only while two numbers are read.
    unsafe {
        if pg_sys::max_wal_senders == 0 || pg_sys::WalSndCtl.is_null() {
            return true;
        }
        let lock = &raw mut (*pg_sys::MainLWLockArray.add(versions::SYNC_REP_LOCK)).lock;
        pg_sys::LWLockAcquire(lock, LWLockMode::LW_SHARED);
        let flushed = (*pg_sys::WalSndCtl).lsn[pg_sys::SYNC_REP_WAIT_FLUSH as usize];
        let flags = (*pg_sys::WalSndCtl).sync_standbys_status;
        pg_sys::LWLockRelease(lock);
        let names = pg_sys::SyncRepStandbyNames;
        flushed >= lsn || !versions::standby_configured(flags, !names.is_null() && *names != 0)
    }
}
