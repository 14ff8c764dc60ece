//! A small file in a memory filesystem. The file outlives the server, but not the boot of the machine, and no backup or copy of a
//! disk contains it.
//!
//! The postmaster opens and maps the file once. Backends inherit the mapping and the open file description, to which the lock of
//! the file belongs. Therefore, the lock of one process is the lock of the whole server, and the kernel releases the lock when the
//! last process of the server ends.
#![allow(unsafe_code)]

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::ptr;
use std::sync::atomic::AtomicU64;

use rustix::fs::{FallocateFlags, fallocate, statfs};
use rustix::mm::{MapFlags, ProtFlags, mmap};

/// The size of the file in bytes: the number, and a note with room for the longest path that PostgreSQL accepts.
const SIZE: usize = 1_200;

/// The offset of the note in bytes, after the number.
const NOTE: usize = size_of::<AtomicU64>();

/// The types of the memory filesystems tmpfs and ramfs in `statfs`, from `linux/magic.h`.
const MEMORY_FILESYSTEMS: [i64; 2] = [0x0102_1994, 0x8584_58f6];

/// An open and mapped file.
pub struct MemoryFile {
    file: File,
    number: &'static AtomicU64,
}

impl MemoryFile {
    /// Opens or creates the file `name` in `directory`, and maps it. The file is only used if it belongs to the user of this
    /// process, no other user can open it, and it has no other name. A new file contains the number 0 and an empty note.
    pub fn open(directory: &Path, name: &str) -> io::Result<MemoryFile> {
        if !directory.is_absolute() {
            return Err(io::Error::other("the path is not absolute"));
        }
        // The kernel's structure has this field as a signed or an unsigned number, depending on the platform.
        #[allow(clippy::unnecessary_cast)]
        let filesystem = statfs(directory)?.f_type as i64;
        if !MEMORY_FILESYSTEMS.contains(&filesystem) {
            return Err(io::Error::other("the directory is not in a memory filesystem"));
        }
        // O_NONBLOCK, because opening a FIFO would wait for its other end.
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .mode(0o600)
            .custom_flags(flags)
            .open(directory.join(name))?;
        let found = file.metadata()?;
        let own = found.is_file()
            && found.uid() == rustix::process::geteuid().as_raw()
            && found.mode() & 0o077 == 0
            && found.nlink() == 1;
        if !own || (found.len() != 0 && found.len() != SIZE as u64) {
            return Err(io::Error::other("the file belongs to another user or program"));
        }
        // Memory is allocated now, because a write to a mapped page without memory would end the process.
        fallocate(&file, FallocateFlags::empty(), 0, SIZE as u64)?;
        // SAFETY: the kernel chooses the address, so no existing mapping is replaced.
        let address =
            unsafe { mmap(ptr::null_mut(), SIZE, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, &file, 0)? };
        // SAFETY: the mapping begins at a page and is longer than the number. It is never unmapped, and every process accesses
        // the number only as an atomic.
        let number = unsafe { AtomicU64::from_ptr(address.cast()) };
        Ok(MemoryFile { file, number })
    }

    /// Returns the number in the file, which every process of every server that has opened the file can change.
    pub fn number(&self) -> &AtomicU64 {
        self.number
    }

    /// Locks the file for this server. Returns false if another server has the lock. Does nothing if this server has the lock.
    pub fn try_lock(&self) -> io::Result<bool> {
        match self.file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Replaces the note. The note is truncated if it does not fit.
    pub fn set_note(&self, note: &str) -> io::Result<()> {
        let mut bytes = [0; SIZE - NOTE];
        let length = note.len().min(bytes.len());
        bytes[..length].copy_from_slice(&note.as_bytes()[..length]);
        self.file.write_all_at(&bytes, NOTE as u64)
    }

    /// Returns the note. Bytes that are not UTF-8 are replaced.
    pub fn note(&self) -> io::Result<String> {
        let mut bytes = [0; SIZE - NOTE];
        self.file.read_exact_at(&mut bytes, NOTE as u64)?;
        let length = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        Ok(String::from_utf8_lossy(&bytes[..length]).into_owned())
    }
}
