//! Determines how the server starts: with its own data, as a standby, or from a backup.

use std::ffi::CStr;
use std::path::Path;

use pgrx::pg_sys;

/// How the server started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Startup {
    /// The server started with its own data, possibly after a crash.
    Primary,
    /// The server started as a standby. `copied` is true if it is a copy of another server that was made by a base
    /// backup or `pg_rewind`.
    Standby { copied: bool },
    /// The server started from a backup or an archive. The latest changes can be missing.
    Restored,
}

impl Startup {
    /// Determines how the server starts, from files in the data directory, before recovery removes these files. The
    /// postmaster calls this function. Its working directory is the data directory.
    pub fn now() -> Startup {
        let there = |file: &CStr| file.to_str().is_ok_and(|name| Path::new(name).exists());
        let copied = there(pg_sys::BACKUP_LABEL_FILE);
        if there(pg_sys::STANDBY_SIGNAL_FILE) {
            Startup::Standby { copied }
        } else if copied || there(pg_sys::RECOVERY_SIGNAL_FILE) {
            Startup::Restored
        } else {
            Startup::Primary
        }
    }
}
