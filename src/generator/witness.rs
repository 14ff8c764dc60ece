//! The witness: a file in a memory filesystem that remembers what this machine has issued with this server's worker ID.
//!
//! The mark is in the data directory. A restore, `pg_rewind`, `pg_resetwal` or a dropped replication origin puts the mark below
//! issued IDs. The witness is not in the data directory. It lasts until the machine is restarted, so a server begins above every
//! ID that this machine has issued since then.
//!
//! The server that issues the first ID locks the witness. A second server on the same machine with the same system identifier and
//! the same worker ID finds the witness locked and does not issue IDs.

use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use std::time::Duration;

use flake::{Mark, Nanos};
use pgrx::debug1;

use crate::config::guc;
use crate::config::identity::Identity;
use crate::generator::{clock, log, shmem, wait};
use crate::message::error::{Error, Holder};
use crate::os::memory_file::MemoryFile;
use crate::pg::server;
use crate::pg::wait_event::WaitEvent;

/// The version of the file's contents. It is part of the file's name, so that no version reads the contents of another one.
const VERSION: u32 = 1;

/// How long a session waits for the lock if the server in the same data directory has it, because the last processes of that
/// server end after its postmaster. The second number is how often the session tries.
const PATIENCE: Nanos = 5_000_000_000;
const POLL: Duration = Duration::from_millis(10);

static FILE: OnceLock<MemoryFile> = OnceLock::new();

/// Opens the witness of this server. This function is called in the postmaster while it preloads libraries. If the witness cannot
/// be used, the server runs without it and logs a warning.
pub fn open(identity: &Identity) {
    let directory = guc::witness_directory();
    if directory.is_empty() || !identity.worker_set {
        return;
    }
    match MemoryFile::open(Path::new(&directory), &name(identity)) {
        // The postmaster calls this function once, and backends inherit the value.
        Ok(file) => drop(FILE.set(file)),
        Err(error) => log::no_witness(&directory, &error),
    }
}

/// Returns the name of the file. A server with another layout, epoch, worker ID or datacenter ID issues other IDs, so it has
/// another witness.
fn name(identity: &Identity) -> String {
    let (format, node) = (&identity.format, identity.node);
    format!(
        "snowflake_pg.{VERSION}.{}.{}.{}.{}.{}",
        server::system_identifier(),
        format.layout,
        format.epoch.unix_ms(),
        node.datacenter,
        node.worker
    )
}

/// Locks the witness for this server. Raises an error if another server has locked it. This function is called before the server
/// issues its first ID, so that a standby can run beside its primary.
pub fn claim(identity: &Identity) {
    let begun = clock::monotonic();
    while let Err(holder) = try_claim() {
        let own = holder.directory == server::data_directory();
        if !own || clock::monotonic().saturating_sub(begun) > PATIENCE {
            Error::WorkerInUse { name: identity.name(identity.node), holder }.raise();
        }
        debug1!("snowflake_pg: waiting for the last process of the previous postmaster to release the witness");
        wait::on_latch(WaitEvent::Mark, POLL);
    }
}

/// Returns the error that [`claim`] would raise now, if a session has already been refused.
pub fn refusal(identity: &Identity) -> Option<Error> {
    if !shmem::worker_in_use().load(Ordering::Relaxed) {
        return None;
    }
    let holder = try_claim().err()?;
    Some(Error::WorkerInUse { name: identity.name(identity.node), holder })
}

fn try_claim() -> Result<(), Holder> {
    let Some(file) = FILE.get() else {
        return Ok(());
    };
    let locked = match file.try_lock() {
        Ok(locked) => locked,
        Err(error) => {
            debug1!("snowflake_pg: continuing without the lock on the witness: {error}");
            true
        }
    };
    shmem::worker_in_use().store(!locked, Ordering::Relaxed);
    if !locked {
        return Err(Holder::parse(&file.note().unwrap_or_default()));
    }
    let holder = Holder { postmaster: server::postmaster(), port: server::port(), directory: server::data_directory() };
    if let Err(error) = file.set_note(&holder.to_string()) {
        debug1!("snowflake_pg: cannot write to the witness: {error}");
    }
    Ok(())
}

/// Returns a mark above every ID that this machine is known to have issued with this worker ID.
pub fn mark() -> Mark {
    FILE.get().and_then(|file| Mark::stored(file.number().load(Ordering::Relaxed))).unwrap_or(Mark::NOTHING_ISSUED)
}

/// Notes that IDs below `mark` may be issued from now on. This function is called after the mark was written and before IDs are
/// issued.
pub fn raise(mark: Mark) {
    if let Some(file) = FILE.get() {
        file.number().fetch_max(mark.value(), Ordering::Relaxed);
    }
}

/// Replaces the mark of the witness, possibly with a lower one. No session raises it at the same time, because the caller has
/// locked the mark.
pub fn set(mark: Mark) {
    if let Some(file) = FILE.get() {
        file.number().store(mark.value(), Ordering::Relaxed);
    }
}
