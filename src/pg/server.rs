//! Properties of this server: its system identifier, data directory, port and postmaster.
#![allow(unsafe_code)]

use std::ffi::CStr;

use pgrx::pg_sys;

/// Returns the system identifier, which a server shares with its standbys and copies. The postmaster reads it before it
/// preloads libraries.
pub fn system_identifier() -> u64 {
    // SAFETY: every process has read the control file or has inherited its contents.
    unsafe { pg_sys::GetSystemIdentifier() }
}

/// Returns the absolute path of the data directory.
pub fn data_directory() -> String {
    // SAFETY: the postmaster sets the pointer to a C string before it preloads libraries, and the pointer never
    // changes.
    unsafe { CStr::from_ptr(pg_sys::DataDir) }.to_string_lossy().into_owned()
}

/// Returns the port on which the server listens.
pub fn port() -> i32 {
    // SAFETY: the variable is a plain number that PostgreSQL sets before it preloads libraries.
    unsafe { pg_sys::PostPortNumber }
}

/// Returns true in the postmaster, and false in all other processes.
pub fn is_postmaster() -> bool {
    // SAFETY: the variables are plain flags, which a process sets when it starts.
    unsafe { pg_sys::IsPostmasterEnvironment && !pg_sys::IsUnderPostmaster }
}

/// Returns the process ID of the postmaster.
pub fn postmaster() -> i32 {
    // SAFETY: the variable is a plain number that the postmaster sets before it preloads libraries.
    unsafe { pg_sys::PostmasterPid }
}
