//! Programs that run beside the servers until a test ends them, for example a connection pooler or a cluster manager.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use crate::patience::{PATIENCE, within};
use crate::server::signal;
use crate::watcher::watch_group;
use crate::{Host, repository};

/// A running program with the processes of its process group. They are ended when this value is dropped, and when this process is
/// killed.
pub struct Service {
    process: Child,
    log: PathBuf,
}

impl Service {
    /// Starts a program that writes its log to this file. The servers' user owns the file.
    pub fn start(mut command: Command, log: &Path) -> Service {
        Host::get().write(log, "");
        let open = || File::options().append(true).open(log).expect("a file that was just written");
        let process = command.process_group(0).stdout(open()).stderr(open()).spawn();
        let process = process.unwrap_or_else(|e| panic!("cannot run {command:?}: {e}"));
        watch_group(process.id());
        Service { process, log: log.into() }
    }

    /// Returns the process ID, which is also the ID of the process group.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Sends a signal to the program, but not to the other processes of its group.
    pub fn signal(&self, name: &str) {
        signal(self.pid(), name);
    }

    /// Returns true until the program has ended.
    pub fn is_running(&mut self) -> bool {
        self.process.try_wait().expect("a child can be waited for").is_none()
    }

    /// Returns what the program has written.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Ends the program and its group: with SIGTERM, and with SIGKILL if this does not help. Children in other process groups,
    /// for example the servers that Patroni starts, continue to run if the program does not end them.
    pub fn stop(mut self) {
        self.end();
    }

    /// Kills the program and its group with SIGKILL. Children in other process groups continue to run.
    pub fn kill(mut self) {
        self.signal("KILL");
        let _ = self.process.wait();
    }

    fn end(&mut self) {
        let group = format!("-{}", self.pid());
        signal(&group, "TERM");
        // A frozen program handles SIGTERM only after it continues.
        signal(&group, "CONT");
        if !within(PATIENCE, || !self.is_running()) {
            eprintln!("{} does not end:\n{}", self.pid(), self.log());
        }
        signal(&group, "KILL");
        let _ = self.process.wait();
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}:\n{}", self.log.display(), self.log());
        }
        self.end();
    }
}

/// Returns an address of the loopback network on which every program can listen on its usual port, because no other number and no
/// other running test has the same address.
pub fn loopback(number: u8) -> String {
    // On Linux, all addresses of 127.0.0.0/8 belong to the loopback interface. Tests that run at the same time have process IDs that
    // are close to each other.
    let [.., high, low] = std::process::id().to_be_bytes();
    format!("127.{}.{high}.{low}", number + 1)
}

impl Host {
    /// Returns a command that runs a program of Debian as the servers' user: one that is installed, or one that `scripts/setup`
    /// unpacked. The program is copied, because the servers' user may be unable to enter the repository. Returns `None` if there is
    /// no such program.
    pub fn debian_program(&self, name: &str) -> Option<Command> {
        let unpacked = repository().join("target/tools/bin").join(name);
        if unpacked.exists() {
            return Some(self.command(&self.copy_of(&unpacked, "programs", name)));
        }
        let directories = ["/usr/bin", "/usr/sbin"].map(|directory| Path::new(directory).join(name));
        directories.iter().find(|path| path.exists()).map(|path| self.command(path))
    }
}
