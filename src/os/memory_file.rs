//! A small file in an in-memory file system. The file outlives the server, but it does not survive a reboot of the
//! machine, and no backup or copy of a disk contains it.
//!
//! The postmaster opens and maps the file once. Backends inherit the mapping and the open file description, which owns
//! the lock on the file. A lock that one process takes is therefore held by the entire server, and the kernel releases
//! it when the server's last process exits.
#![allow(unsafe_code)]

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::ptr;
use std::sync::atomic::AtomicU64;

use rustix::fs::{FallocateFlags, fallocate, statfs};
use rustix::mm::{MapFlags, ProtFlags, mmap};

/// The size of a file without a head, in bytes. The file contains the number and a note, which has room for the longest
/// path that PostgreSQL accepts.
const SIZE: usize = 1_200;

/// The size of a word, in bytes. The number occupies one word.
const WORD: usize = size_of::<AtomicU64>();

/// The file system type of tmpfs in `statfs`, from `linux/magic.h`. ramfs is not supported, because it cannot allocate
/// memory in advance.
const TMPFS: i64 = 0x0102_1994;

/// Returns true if the file could not be opened because a different user owns it. In `/dev/shm`, any user can create a
/// file with any name before the server does.
pub fn is_foreign(error: &io::Error) -> bool {
    // An error of the operating system has no inner error.
    error.kind() == io::ErrorKind::PermissionDenied && error.get_ref().is_some()
}

/// Returns the reason why a file cannot be used. For example, a different user may own it.
fn refusal(path: &Path, error: io::Error) -> io::Error {
    match fs::symlink_metadata(path) {
        Ok(found) if found.uid() != rustix::process::geteuid().as_raw() => {
            let text = format!("file \"{}\" belongs to the user with ID {}", path.display(), found.uid());
            io::Error::new(io::ErrorKind::PermissionDenied, text)
        }
        _ => error,
    }
}

/// An open and mapped file, which consists of a head, the number and a note.
pub struct MemoryFile {
    file: File,
    /// The head and the number.
    words: &'static [AtomicU64],
}

impl MemoryFile {
    /// Opens or creates the file `name` in `directory` and maps it. The file is used only if it belongs to this
    /// process's user, no other user can open it, and it has no other hard links. A new file contains a head of `head`
    /// zero words, the number 0 and an empty note.
    pub fn open(directory: &Path, name: &str, head: usize) -> io::Result<MemoryFile> {
        let size = head * WORD + SIZE;
        if !directory.is_absolute() {
            return Err(io::Error::other("the path is not absolute"));
        }
        // This field of the kernel's structure is signed or unsigned, depending on the platform.
        #[allow(clippy::unnecessary_cast)]
        let filesystem = statfs(directory)?.f_type as i64;
        if filesystem != TMPFS {
            return Err(io::Error::other("the directory is not in an in-memory file system (tmpfs)"));
        }
        // Without O_NONBLOCK, opening a FIFO would wait for its other end.
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let path = directory.join(name);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .mode(0o600)
            .custom_flags(flags)
            .open(&path)
            .map_err(|error| refusal(&path, error))?;
        let found = file.metadata()?;
        let own = found.is_file()
            && found.uid() == rustix::process::geteuid().as_raw()
            && found.mode() & 0o077 == 0
            && found.nlink() == 1;
        if !own || (found.len() != 0 && found.len() != size as u64) {
            return Err(refusal(&path, io::Error::other("the file belongs to another user or program")));
        }
        // Allocate the memory now, because a process that writes to a mapped page without memory is terminated.
        fallocate(&file, FallocateFlags::empty(), 0, size as u64)?;
        // SAFETY: the kernel chooses the address, so no existing mapping is replaced.
        let address =
            unsafe { mmap(ptr::null_mut(), size, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, &file, 0)? };
        // SAFETY: the mapping starts at a page boundary and is longer than these words. It is never unmapped, and all
        // processes access the words only as atomics.
        let words = unsafe { std::slice::from_raw_parts(address.cast::<AtomicU64>(), head + 1) };
        Ok(MemoryFile { file, words })
    }

    /// Returns the number in the file. Each process of each server that has opened the file can change this number.
    pub fn number(&self) -> &AtomicU64 {
        &self.words[self.words.len() - 1]
    }

    /// Returns the head and the number.
    pub fn words(&self) -> &'static [AtomicU64] {
        self.words
    }

    /// Locks the file for this server. Returns false if another server holds the lock. Has no effect if this server
    /// already holds the lock.
    pub fn try_lock(&self) -> io::Result<bool> {
        match self.lock_command(libc::F_OFD_SETLK) {
            Ok(_) => Ok(true),
            Err(error) if [Some(libc::EAGAIN), Some(libc::EACCES)].contains(&error.raw_os_error()) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns true if another server holds the lock. Does not lock the file.
    pub fn is_locked_by_another(&self) -> io::Result<bool> {
        Ok(self.lock_command(libc::F_OFD_GETLK)? != libc::F_UNLCK)
    }

    /// Executes a command for an exclusive lock on the entire file. The lock belongs to the open file description,
    /// which all processes of a server share. Returns the resulting lock type.
    fn lock_command(&self, command: i32) -> io::Result<i32> {
        let mut lock = libc::flock {
            l_type: libc::F_WRLCK as i16,
            l_whence: libc::SEEK_SET as i16,
            l_start: 0,
            l_len: 0,
            l_pid: 0,
        };
        // SAFETY: the descriptor is open, and the pointer refers to a complete structure, which the kernel reads and
        // writes.
        match unsafe { libc::fcntl(self.file.as_raw_fd(), command, &raw mut lock) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(i32::from(lock.l_type)),
        }
    }

    /// Returns false if the file has been removed, so that no other server can find it.
    pub fn exists(&self) -> bool {
        self.file.metadata().is_ok_and(|found| found.nlink() > 0)
    }

    /// Replaces the note. If the note does not fit, it is truncated.
    pub fn set_note(&self, note: &str) -> io::Result<()> {
        let mut bytes = [0; SIZE - WORD];
        let length = note.len().min(bytes.len());
        bytes[..length].copy_from_slice(&note.as_bytes()[..length]);
        self.file.write_all_at(&bytes, self.note_offset())
    }

    /// Returns the note. Bytes that are not valid UTF-8 are replaced.
    pub fn note(&self) -> io::Result<String> {
        let mut bytes = [0; SIZE - WORD];
        self.file.read_exact_at(&mut bytes, self.note_offset())?;
        let length = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        Ok(String::from_utf8_lossy(&bytes[..length]).into_owned())
    }

    fn note_offset(&self) -> u64 {
        (self.words.len() * WORD) as u64
    }
}
