//! The witness: the warnings about a file that cannot be opened, locked or found. The error of a second server on the
//! same machine is in [`crate::message::worker_id`].

use std::io;

use crate::message::report::warn_of;
use crate::os::memory_file;

/// Warns that the server runs without a witness.
pub fn cannot_use(directory: &str, error: &io::Error) {
    warn_of(
        format!("cannot use directory \"{directory}\" for the witness: {error}"),
        "Without a witness, this server does not notice that its data directory was reverted to an earlier state, or that another \
         server on this machine has the same worker ID.",
        hint(error),
    );
}

/// Warns that a server that uses a registry runs without a witness.
pub fn cannot_use_in_fleet(directory: &str, error: &io::Error) {
    warn_of(
        format!("cannot use directory \"{directory}\" for the witness: {error}"),
        "Without a witness, this server requests a different worker ID from the registry at every start, and cannot \
         issue IDs until the registry answers.",
        hint(error),
    );
}

/// Warns that the server cannot lock the witness.
pub fn cannot_lock(error: &io::Error) {
    warn_of(
        format!("cannot lock the witness: {error}"),
        "The server continues to issue IDs. It does not notice another server on this machine with the same worker ID.",
        "Make sure that no other server has the same worker ID.",
    );
}

/// Warns that the witness file was removed while the server was running.
pub fn removed() {
    warn_of(
        "the witness file was removed",
        "The server continues to issue IDs. At its next start, it will have no witness. In the meantime, it does not \
         notice another server on this machine with the same worker ID.",
        "Restart the server to create the file again. If systemd removes the file, run the server as a system user, or set \
         RemoveIPC=no in logind.conf.",
    );
}

/// Warns that the witness file was removed while the server was running, for a server that uses a registry.
pub fn removed_in_fleet() {
    warn_of(
        "the witness file was removed",
        "The server continues to issue IDs with its worker ID. At its next start, it will request a different worker \
         ID from the registry, and cannot issue IDs until the registry answers.",
        "To create the file again, restart the server while the registry is responding. If systemd removes the file, run the server as a \
         system user, or set RemoveIPC=no in logind.conf.",
    );
}

/// Returns the hint for a witness that cannot be opened.
fn hint(error: &io::Error) -> &'static str {
    if memory_file::is_foreign(error) {
        return "Remove this file as root. To keep other users from creating it, set \"snowflake_pg.witness_directory\" \
                to a directory that only the user of the server can write to, for example \"/dev/shm/snowflake_pg\". \
                Then restart the server.";
    }
    "Set \"snowflake_pg.witness_directory\" to a directory in an in-memory file system, or to an empty string to run without a witness."
}
