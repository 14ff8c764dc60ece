//! What a synchronous standby has acknowledged, seen in the shared memory of PostgreSQL.
//!
//! `SyncRepWaitForLSN` would not do: it returns without a word when the wait is cancelled, and at once where the session has
//! `synchronous_commit` off or local.

use pgrx::pg_sys::{self, LWLockMode, XLogRecPtr};

use crate::major;

/// True where the synchronous standby has flushed the WAL up to `lsn`, or none is configured.
#[allow(unsafe_code)]
pub fn acknowledged(lsn: XLogRecPtr) -> bool {
    // SAFETY: the control structure and the lock are in shared memory that every backend is attached to from before its
    // first statement; the lock is held for three reads.
    unsafe {
        if pg_sys::max_wal_senders == 0 || pg_sys::WalSndCtl.is_null() {
            return true;
        }
        let lock = &raw mut (*pg_sys::MainLWLockArray.add(major::SYNC_REP_LOCK)).lock;
        pg_sys::LWLockAcquire(lock, LWLockMode::LW_SHARED);
        let flushed = (*pg_sys::WalSndCtl).lsn[pg_sys::SYNC_REP_WAIT_FLUSH as usize];
        let flags = (*pg_sys::WalSndCtl).sync_standbys_status;
        pg_sys::LWLockRelease(lock);
        let names = pg_sys::SyncRepStandbyNames;
        flushed >= lsn || !major::standby_configured(flags, !names.is_null() && *names != 0)
    }
}
