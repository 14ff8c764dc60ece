//! Shell commands, typed as a reader of the manual types them.

use std::fs::File;
use std::path::Path;
use std::process::Command;

use crate::{Answer, Cluster, Host, output, typed, watch};

impl Host {
    /// Returns a shell that runs this text as the servers' user, with the installation's programs in `PATH`.
    pub fn shell(&self, typed: &str) -> Command {
        let mut command = self.command(Path::new("sh"));
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", self.installation().bin.display())).args(["-c", typed]);
        command
    }
}

impl Cluster {
    /// Starts the server with this command, which is `postgres` or a shell that runs `exec postgres ..`. If the server does not
    /// start, the error is the text of its log.
    pub fn try_start_by(&mut self, mut command: Command) -> Result<(), String> {
        assert!(self.postmaster.is_none(), "the server is running");
        self.configure();
        let log = self.new_log();
        // The server must not inherit RUST_BACKTRACE. Otherwise, it would log a backtrace for every statement that is cancelled.
        command.env_remove("RUST_BACKTRACE").stdout(log.try_clone().expect("a file handle")).stderr(log);
        if !self.kept {
            watch(self.dir());
            if let Some(machine) = self.like.setting("snowflake_pg.witness_directory") {
                watch(Path::new(machine));
            }
        }
        self.postmaster = Some(command.spawn().expect("it can be run"));
        self.wait_until_up()
    }

    /// Returns psql, which runs its input and stops at the first error.
    pub fn psql(&self) -> Command {
        let mut psql = self.program("psql");
        psql.args(["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1"]);
        psql
    }

    /// Creates a database, and restores a dump of another database of this server into it.
    pub fn restore_dump(&self, from: &str, to: &str) {
        self.connect().run(&format!("CREATE DATABASE {to} TEMPLATE template0"));
        let dump = output(self.program("pg_dump").args(["-d", from]));
        let mut psql = self.psql();
        psql.args(["-d", to]);
        typed(psql, &dump).expect("the dump can be restored");
    }

    /// Creates an empty log. The log is in the data directory, which `pg_rewind` changes, so the servers' user can write to the
    /// log as well.
    fn new_log(&self) -> File {
        Host::get().write(&self.log_path(), "");
        File::options().append(true).open(self.log_path()).expect("a file that was just written")
    }
}
