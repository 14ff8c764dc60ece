//! What a reader types at a shell.

use std::fs::File;
use std::path::Path;
use std::process::Command;

use crate::{Builder, Cluster, Host};

impl Host {
    /// A shell that is to run this as the servers' user, with the installation's programs in `PATH`.
    pub fn shell(&self, typed: &str) -> Command {
        let mut command = self.command(Path::new("sh"));
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", self.installation().bin.display())).args(["-c", typed]);
        command
    }
}

impl Builder {
    /// The cluster without data: what is typed brings them.
    pub fn empty(self) -> Cluster {
        let dir = self.prepare();
        self.into_cluster(dir)
    }
}

impl Cluster {
    /// Starts the server by a program that is it, or a shell that becomes it, at an `exec postgres ..`; an error is what was
    /// written to the log.
    pub fn try_start_by(&mut self, mut command: Command) -> Result<(), String> {
        assert!(self.postmaster.is_none(), "the server is running");
        self.configure();
        let log = self.new_log();
        // The caller's wish for backtraces is not the server's: it would log one for every statement that is cancelled.
        command.env_remove("RUST_BACKTRACE").stdout(log.try_clone().expect("a file handle")).stderr(log);
        self.postmaster = Some(command.spawn().expect("it can be run"));
        self.wait_until_ready()
    }

    /// psql, which runs what it reads, until a statement is an error.
    pub fn psql(&self) -> Command {
        let mut psql = self.program("psql");
        psql.args(["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1"]);
        psql
    }

    /// An empty log, which the servers' user may write as well: `pg_rewind` does, for it lies in the data directory.
    fn new_log(&self) -> File {
        Host::get().write(&self.log_path(), "");
        File::options().append(true).open(self.log_path()).expect("a file that was just written")
    }
}
