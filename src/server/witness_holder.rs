//! The server that has locked the witness, as described in the witness.

use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::pg::server;

/// A server on this machine.
pub struct WitnessHolder {
    /// The process ID of the postmaster.
    pub postmaster: i32,
    pub port: i32,
    /// The device and the inode of the data directory.
    place: String,
    /// The path of the data directory.
    pub directory: String,
}

impl WitnessHolder {
    /// Returns the description of this server.
    pub fn this_server() -> WitnessHolder {
        let directory = server::data_directory();
        WitnessHolder { postmaster: server::postmaster(), port: server::port(), place: place(&directory), directory }
    }

    /// Parses the text that `to_string` returns. Parts that cannot be parsed are 0 or empty.
    pub fn parse(text: &str) -> WitnessHolder {
        let mut lines = text.splitn(4, '\n');
        let mut next = || lines.next().unwrap_or_default();
        let (postmaster, port) = (next().parse().unwrap_or(0), next().parse().unwrap_or(0));
        WitnessHolder { postmaster, port, place: next().into(), directory: next().into() }
    }

    /// Returns true if this server runs in the data directory of the current server. The paths are not compared,
    /// because the data directory may have been moved, and a different container can use the same path.
    pub fn is_in_this_directory(&self) -> bool {
        !self.place.is_empty() && self.place == place(&server::data_directory())
    }

    /// Returns true if the postmaster of this server has exited, so that its last processes will exit soon.
    pub fn has_stopped(&self) -> bool {
        match fs::read_to_string(Path::new(&self.directory).join("postmaster.pid")) {
            Ok(text) => text.lines().next().and_then(|line| line.trim().parse().ok()) != Some(self.postmaster),
            Err(error) => error.kind() == ErrorKind::NotFound,
        }
    }
}

fn place(directory: &str) -> String {
    fs::metadata(directory).map_or(String::new(), |found| format!("{}:{}", found.dev(), found.ino()))
}

impl fmt::Display for WitnessHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}\n{}\n{}", self.postmaster, self.port, self.place, self.directory)
    }
}
