//! The witness of a server that uses a registry: the record of the grant ([`flake::fleet::Record`]), in a file in an
//! in-memory file system.
//!
//! The record of the grant is in this file, not in the data directory. The file does not survive a reboot of the
//! machine, and no backup, copy or rewind of a disk contains it. A server that finds no record requests a worker ID
//! from the registry, which is always safe. A server that finds a record continues with its worker ID without
//! contacting the registry. This is safe because the postmaster locks the file, so only one server at a time can use
//! the record.
//!
//! The file name is derived from the device, inode and path of the data directory. They serve only to distinguish
//! servers that share an in-memory file system. A data directory that is moved or mounted elsewhere has a different
//! file, and its server gets a different worker ID.
//!
//! # Locking contract
//!
//! The postmaster locks the file before it starts other processes, and the lock lasts until the last of them exits.
//! Only the registrar writes the record, one whole word at a time. No process reads the record while it is being
//! written, because only the registrar reads it and, before the registrar starts, the postmaster. A partially written
//! record has a wrong checksum and is void. The checksum does not cover the last word, [`Record::used`]. Any process
//! can raise this word. The registrar replaces it only before it publishes a new worker ID, when no session can issue
//! IDs with that worker ID. If there is no file, the words are in shared memory, so that the registrar finds the record
//! again after an error.
#![allow(unsafe_code)]

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use flake::Mark;
use flake::fleet::{RECORD_SIZE, Record, USED_OFFSET};
use pgrx::{PGRXSharedMemory, PgAtomic, pg_shmem_init, prelude::*};

use crate::config::guc;
use crate::config::identity::Identity;
use crate::faults::{self, Fault};
use crate::message::witness;
use crate::os::memory_file::MemoryFile;
use crate::pg::{background_worker, server};
use crate::server::witness_holder::WitnessHolder;

/// The version of the file's contents. It is part of the file name, so that no version reads contents that a different
/// version wrote.
const VERSION: u32 = 1;

/// How long the postmaster waits for the lock. After a restart, the previous postmaster's last processes may still hold
/// it. `POLL` is the interval between attempts.
const PATIENCE: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(10);

const WORDS: usize = RECORD_SIZE / size_of::<u64>();
const USED: usize = USED_OFFSET / size_of::<u64>();
const _: () = assert!(USED == WORDS - 1, "the number of the file is the last word of the record");

static FILE: OnceLock<MemoryFile> = OnceLock::new();

/// The record of a server that does not use a file.
struct Unfiled([AtomicU64; WORDS]);

// SAFETY: the type consists of atomics and contains no pointer.
unsafe impl PGRXSharedMemory for Unfiled {}

// SAFETY: the name is the extension's own, so no other library uses it.
static UNFILED: PgAtomic<Unfiled> = unsafe { PgAtomic::new(c"snowflake_pg record") };

/// Opens and locks this server's witness. The postmaster calls this function while it preloads libraries. If the
/// witness cannot be used, the server logs a warning, runs without it, and requests a worker ID from the registry at
/// every start.
#[allow(clippy::undocumented_unsafe_blocks)] // The unsafe blocks are in the macro.
pub fn open(identity: &Identity) {
    if !identity.registry_set || !background_worker::in_normal_server() {
        return;
    }
    pg_shmem_init!(UNFILED = Unfiled([const { AtomicU64::new(0) }; WORDS]));
    let directory = guc::witness_directory();
    if directory.is_empty() {
        return;
    }
    let opened = name().and_then(|name| MemoryFile::open(Path::new(&directory), &name, USED)).and_then(|file| {
        let begun = Instant::now();
        while !faults::on(Fault::WitnessShared) && !file.try_lock()? {
            if begun.elapsed() > PATIENCE {
                let holder = WitnessHolder::parse(&file.note().unwrap_or_default());
                let process = holder.postmaster;
                return Err(std::io::Error::other(format!("the server with process ID {process} has locked the file")));
            }
            std::thread::sleep(POLL);
        }
        Ok(file)
    });
    match opened {
        Ok(file) => {
            let holder = WitnessHolder::this_server();
            if let Err(error) = file.set_note(&holder.to_string()) {
                debug1!("snowflake_pg: cannot write to the witness: {error}");
            }
            // The postmaster calls this function once, and its children inherit the value.
            drop(FILE.set(file));
        }
        Err(error) => witness::cannot_use_in_fleet(&directory, &error),
    }
}

fn name() -> std::io::Result<String> {
    let path = server::data_directory();
    let found = fs::metadata(&path)?;
    // 64-bit FNV-1a.
    let hash = path
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    Ok(format!("snowflake_pg.fleet.{VERSION}.{:x}.{:x}.{hash:016x}", found.dev(), found.ino()))
}

fn words() -> &'static [AtomicU64] {
    match FILE.get() {
        Some(file) => file.words(),
        None => &UNFILED.get().0,
    }
}

/// Returns the record, or `None` if there is none. This function must be called after [`open`].
pub fn load() -> Option<Record> {
    let mut bytes = [0; RECORD_SIZE];
    for (to, word) in bytes.chunks_exact_mut(size_of::<u64>()).zip(words()) {
        to.copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
    }
    Record::decode(&bytes)
}

/// Stores a record, except for [`Record::used`]. Only the registrar calls this function. Nothing needs to be flushed,
/// because the record outlives the processes that have mapped the file.
pub fn store(record: &Record) {
    let bytes = record.encode();
    for (word, from) in words()[..USED].iter().zip(bytes.chunks_exact(size_of::<u64>())) {
        word.store(u64::from_le_bytes(from.try_into().expect("eight bytes")), Ordering::Relaxed);
    }
}

/// Makes the witness void. Only the registrar calls this function.
pub fn clear() {
    words()[..USED].iter().for_each(|word| word.store(0, Ordering::Relaxed));
}

/// Returns a mark above every ID that was issued under the grant. This function and [`raise`] can be used only if
/// [`crate::fleet::grant::published`] returns a snapshot.
pub fn used() -> Mark {
    Mark::stored(words()[USED].load(Ordering::Relaxed)).unwrap_or(Mark::NOTHING_ISSUED)
}

/// Records that IDs below `mark` may be issued from now on. A session calls this function after the mark has been
/// written and before it issues IDs.
pub fn raise(mark: Mark) {
    words()[USED].fetch_max(mark.value(), Ordering::Relaxed);
}

/// Replaces the mark, possibly with a lower one. No session raises it at the same time, because the caller holds the
/// lock on the mark.
pub fn set(mark: Mark) {
    words()[USED].store(mark.value(), Ordering::Relaxed);
}

/// Forgets which IDs were issued, because they contain a worker ID that this server no longer holds. Only the registrar
/// calls this function, before it publishes the new worker ID.
pub fn begin() {
    set(Mark::NOTHING_ISSUED);
}

/// Returns false if the file has been removed since the server started. The server continues to use the contents of the
/// removed file, which its processes have mapped. A new file with the same name would not be the one to which these
/// processes write.
pub fn exists() -> bool {
    faults::on(Fault::RemovalUnnoticed) || FILE.get().is_none_or(MemoryFile::exists)
}

/// Returns the path of the file, or `None` if the server runs without one.
pub fn path() -> Option<String> {
    let file = name().ok().filter(|_| FILE.get().is_some())?;
    Some(Path::new(&guc::witness_directory()).join(file).display().to_string())
}
