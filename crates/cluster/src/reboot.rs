//! The time from one restart of a machine to the next, as far as servers notice it: a directory in memory.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{Builder, Host};

/// The in-memory file system of a machine. Servers with different values behave like servers on different machines.
pub struct Boot(PathBuf);

impl Boot {
    /// Returns a machine that has just been started.
    pub fn new(name: &str) -> Boot {
        Boot(Host::get().memory_dir(&format!("{name}.boot")))
    }

    /// Returns the directory of the witnesses.
    pub fn dir(&self) -> &Path {
        &self.0
    }

    /// Returns the paths of the witnesses.
    pub fn witnesses(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(&self.0).expect("the directory was created");
        files.map(|file| file.expect("a file can be listed").path()).collect()
    }

    /// Restarts the machine. The in-memory file system is empty again.
    pub fn reboot(&self) {
        for file in self.witnesses() {
            fs::remove_file(file).expect("a witness can be removed");
        }
    }

    /// Leaves the directory in place when this process ends, for a server that outlives it.
    pub fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Boot {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Builder {
    /// Runs the server on this machine. By default, a server has no witness, as if every restart were on a different machine, so
    /// that tests of the mark depend on nothing else. `None` leaves this default.
    pub fn on<'a>(self, machine: impl Into<Option<&'a Boot>>) -> Builder {
        match machine.into() {
            Some(machine) => self.set("snowflake_pg.witness_directory", &machine.dir().to_string_lossy()),
            None => self,
        }
    }
}
