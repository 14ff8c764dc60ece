//! The witness: a file in an in-memory file system that contains a second copy of the mark.
//!
//! The mark is stored in the data directory. A restore, `pg_rewind`, `pg_resetwal` or a dropped replication origin can
//! set it below issued IDs. The witness is outside the data directory and lasts until the machine is restarted. The
//! witness makes new IDs start above every ID that the server has issued on this machine since the machine was started.
//!
//! The server that issues the first ID locks the witness. A second server on the same machine with the same system
//! identifier and the same worker ID finds the witness locked and does not issue IDs.

use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flake::{Mark, Nanos};
use pgrx::debug1;

use crate::config::guc;
use crate::config::identity::Identity;
use crate::fleet::{grant, record};
use crate::message::error::Error;
use crate::message::witness;
use crate::message::worker_id::WorkerIdProblem;
use crate::os::memory_file::MemoryFile;
use crate::pg::server;
use crate::pg::wait_event::WaitEvent;
use crate::server::witness_holder::WitnessHolder;
use crate::server::{clock, log_limit, shmem, wait};

/// The version of the file's contents. It is part of the file name, so that no version reads contents that a different
/// version wrote.
const VERSION: u32 = 1;

/// How long a session waits for the lock if the server that holds it is stopping. A server's last processes can exit
/// after its postmaster. `POLL` is the interval between attempts.
const PATIENCE: Nanos = 5_000_000_000;
const POLL: Duration = Duration::from_millis(10);

static FILE: OnceLock<MemoryFile> = OnceLock::new();

/// True if this process has found that this server holds the lock on the file. A server keeps the lock until its last
/// process exits. The postmaster does not lock the file, so the value is false when a backend starts.
static LOCKED: AtomicBool = AtomicBool::new(false);

/// Opens this server's witness. The postmaster calls this function while it preloads libraries. If the witness cannot
/// be used, the server logs a warning and runs without it.
pub fn open(identity: &Identity) {
    let directory = guc::witness_directory();
    if directory.is_empty() || !identity.worker_set {
        return;
    }
    match MemoryFile::open(Path::new(&directory), &name(identity), 0) {
        // The postmaster calls this function once, and backends inherit the value.
        Ok(file) => drop(FILE.set(file)),
        Err(error) => witness::cannot_use(&directory, &error),
    }
}

/// Returns the name of the file. The name contains neither the layout nor the epoch, because different layouts can
/// produce the same IDs from the same worker ID, and a mark applies to every layout.
fn name(identity: &Identity) -> String {
    let node = identity.node;
    format!("snowflake_pg.{VERSION}.{}.{}.{}", server::system_identifier(), node.datacenter, node.worker)
}

/// Locks the witness for this server. Raises an error if another server has locked it. This function is called only
/// when the server is able to issue its first ID, so that a standby can run on the same machine as its primary.
pub fn claim(identity: &Identity) {
    let Some(file) = FILE.get() else { return };
    let begun = clock::monotonic();
    while !try_lock(file) {
        let holder = holder(file);
        let own = holder.is_in_this_directory();
        if clock::monotonic().saturating_sub(begun) > PATIENCE {
            // PostgreSQL ensures that only one server runs in a data directory, so the lock belongs to a process of an
            // earlier postmaster, which does not issue IDs. The lock will be taken when the reservation is extended.
            if own {
                break;
            }
            refuse(identity, holder);
        }
        if !own && !holder.has_stopped() {
            refuse(identity, holder);
        }
        debug1!("snowflake_pg: waiting for the last process of another server to release the witness");
        wait::on_latch(WaitEvent::Mark, POLL);
    }
    shmem::worker_in_use().store(false, Ordering::Relaxed);
}

fn refuse(identity: &Identity, holder: WitnessHolder) -> ! {
    shmem::worker_in_use().store(true, Ordering::Relaxed);
    in_use(identity, holder).raise()
}

fn in_use(identity: &Identity, holder: WitnessHolder) -> Error {
    let WitnessHolder { postmaster, port, directory, .. } = holder;
    Error::WorkerId(WorkerIdProblem::InUse { name: identity.name(identity.node), postmaster, port, directory })
}

/// Returns the error that [`claim`] would raise now. Returns `None` unless a session has already been refused. Does not
/// lock the witness.
pub fn refusal(identity: &Identity) -> Option<Error> {
    let file = FILE.get().filter(|_| shmem::worker_in_use().load(Ordering::Relaxed))?;
    let locked = file.is_locked_by_another().is_ok_and(|locked| locked);
    locked.then(|| in_use(identity, holder(file)))
}

/// Locks the file and records in it that this server holds the lock. Returns false if another server holds the lock.
fn try_lock(file: &MemoryFile) -> bool {
    if LOCKED.load(Ordering::Relaxed) {
        return true;
    }
    let noted = file.try_lock().and_then(|locked| {
        if locked {
            LOCKED.store(true, Ordering::Relaxed);
            file.set_note(&WitnessHolder::this_server().to_string())?;
        }
        Ok(locked)
    });
    noted.unwrap_or_else(|error| {
        if shmem::limiters().witness.pass(log_limit::WITNESS_EVERY, 0).is_some() {
            witness::cannot_lock(&error);
        }
        true
    })
}

fn holder(file: &MemoryFile) -> WitnessHolder {
    WitnessHolder::parse(&file.note().unwrap_or_default())
}

/// Returns the mark in the witness. It is above every ID that this server has issued on this machine while it had a
/// witness.
pub fn mark() -> Mark {
    if grant::uses_registry() {
        return record::used();
    }
    FILE.get().and_then(|file| Mark::stored(file.number().load(Ordering::Relaxed))).unwrap_or(Mark::NOTHING_ISSUED)
}

/// Records that IDs below `mark` may be issued from now on. This function is called after the mark has been written and
/// before IDs are issued.
pub fn raise(mark: Mark) {
    if grant::uses_registry() {
        return record::raise(mark);
    }
    if let Some(file) = FILE.get() {
        file.number().fetch_max(mark.value(), Ordering::Relaxed);
    }
}

/// Locks the witness if the last process of an earlier postmaster has held the lock until now, and logs a warning if the
/// file was removed. The caller holds no lock, because the log can be sent to a client that does not read.
pub fn check() {
    let Some(file) = FILE.get().filter(|_| !grant::uses_registry()) else { return };
    try_lock(file);
    if !file.exists() && shmem::limiters().witness.pass(log_limit::WITNESS_EVERY, 0).is_some() {
        witness::removed();
    }
}

/// Replaces the mark in the witness, possibly with a lower one. No session raises it at the same time, because the
/// caller holds the lock on the mark.
pub fn set(mark: Mark) {
    if grant::uses_registry() {
        return record::set(mark);
    }
    if let Some(file) = FILE.get() {
        file.number().store(mark.value(), Ordering::Relaxed);
    }
}
