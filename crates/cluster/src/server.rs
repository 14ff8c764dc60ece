//! One server that tests can configure, start, stop and crash.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use postgres::{Client, Config, NoTls};

use crate::patience::{PATIENCE, within};
use crate::{Host, command};

/// How a server is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Sessions are terminated, and the shutdown checkpoint is written.
    Fast,
    /// Nothing is written, and the next start performs crash recovery.
    Immediate,
}

/// A server with its own data directory.
pub struct Cluster {
    dir: PathBuf,
    socket: PathBuf,
    pub(crate) like: Builder,
    pub(crate) postmaster: Option<Child>,
    /// True for a server that continues to run after this process has ended.
    pub(crate) kept: bool,
    /// Reserves the name of the server.
    claim: Option<File>,
}

/// The settings, environment and arguments of a server.
pub struct Builder {
    pub(crate) name: String,
    settings: Vec<(String, String)>,
    pub(crate) env: Vec<(String, String)>,
    arguments: Vec<String>,
}

impl Builder {
    /// Sets a parameter in `postgresql.conf`. This function quotes the value.
    pub fn set(mut self, name: &str, value: &str) -> Builder {
        self.change(name, Some(value));
        self
    }

    /// Removes a parameter from `postgresql.conf`.
    pub fn unset(mut self, name: &str) -> Builder {
        self.change(name, None);
        self
    }

    /// Sets an environment variable of the server.
    pub fn env(mut self, name: &str, value: &str) -> Builder {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Adds an argument to the server's command line.
    pub fn argument(mut self, argument: &str) -> Builder {
        self.arguments.push(argument.into());
        self
    }

    /// Uses the library that `scripts/faults` builds, with one of its faults switched on, or with several, separated by spaces.
    pub fn fault(self, name: &str) -> Builder {
        let library_path = format!("{}:$libdir", Host::get().faults().display());
        self.set("dynamic_library_path", &library_path).env("SNOWFLAKE_PG_FAULT", name)
    }

    /// Does the same if there is a fault to switch on.
    pub fn fault_if(self, name: Option<&str>) -> Builder {
        name.into_iter().fold(self, Builder::fault)
    }

    /// Creates the cluster but does not start it.
    pub fn create(self) -> Cluster {
        let host = Host::get();
        let template = host.template();
        let cluster = self.empty();
        host.copy_dir(&template, &cluster.dir);
        cluster
    }

    /// Creates the cluster and starts it.
    pub fn start(self) -> Cluster {
        let mut cluster = self.create();
        cluster.start();
        cluster
    }

    /// Creates the cluster, starts it, and connects to it like [`Cluster::session`].
    pub fn start_session(self) -> (Cluster, Client) {
        let cluster = self.start();
        let session = cluster.session();
        (cluster, session)
    }

    /// Returns the cluster with an empty data directory, which replaces the data directory of an earlier run. The caller fills
    /// the new directory.
    pub fn empty(self) -> Cluster {
        let host = Host::get();
        let claim = host.claim(&self.name);
        stop_stale(&host.dir(&self.name), Stop::Immediate);
        let dir = host.fresh_dir(&self.name);
        self.into_cluster(dir, Some(claim))
    }

    pub(crate) fn into_cluster(self, dir: PathBuf, claim: Option<File>) -> Cluster {
        let socket = Host::get().socket_dir(&self.name);
        Cluster { dir, socket, like: self, postmaster: None, kept: false, claim }
    }

    pub(crate) fn setting(&self, name: &str) -> Option<&str> {
        let (_, value) = self.settings.iter().find(|(known, _)| known == name)?;
        Some(value)
    }

    fn change(&mut self, name: &str, value: Option<&str>) {
        self.settings.retain(|(known, _)| known != name);
        self.settings.extend(value.map(|value| (name.into(), value.into())));
    }
}

impl Cluster {
    /// Configures a server called `name`, which no other test uses, with the library preloaded, with worker ID 1 and without
    /// a witness. `fsync` is off, so the server does not survive a power loss.
    pub fn builder(name: &str) -> Builder {
        let settings = [
            ("shared_preload_libraries", "snowflake_pg"),
            ("snowflake_pg.worker_id", "1"),
            ("snowflake_pg.witness_directory", ""),
            ("fsync", "off"),
            ("max_connections", "100"),
            ("timezone", "UTC"),
            ("log_line_prefix", "%m [%p] %q%a "),
        ];
        Builder {
            name: name.into(),
            settings: settings.map(|(name, value)| (name.into(), value.into())).to_vec(),
            env: Vec::new(),
            arguments: Vec::new(),
        }
    }

    /// Returns the data directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the directory of the socket, which is the host to connect to.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Sets a parameter. This takes effect at the next start, or at the next [`Cluster::reload`].
    pub fn set(&mut self, name: &str, value: &str) {
        self.like.change(name, Some(value));
        self.configure();
    }

    /// Removes a parameter. This takes effect at the next start, or at the next [`Cluster::reload`].
    pub fn unset(&mut self, name: &str) {
        self.like.change(name, None);
        self.configure();
    }

    /// Makes the running server read its configuration again.
    pub fn reload(&self) {
        self.connect().query("SELECT pg_reload_conf()", &[]).expect("a superuser may reload");
    }

    /// Starts the server. If the server does not start, this function panics with the text of its log.
    pub fn start(&mut self) {
        if let Err(log) = self.try_start() {
            panic!("the server of {} did not start:\n{log}", self.dir.display());
        }
    }

    /// Starts the server. If the server does not start, the error is the text of its log.
    pub fn try_start(&mut self) -> Result<(), String> {
        let mut command = Host::get().program("postgres");
        command
            .arg("-D")
            .arg(&self.dir)
            .args(&self.like.arguments)
            .envs(self.like.env.iter().map(|(name, value)| (name, value)));
        if self.kept {
            // The server leaves the terminal's process group, so that it does not end with the caller.
            std::os::unix::process::CommandExt::process_group(&mut command, 0);
        }
        self.try_start_by(command)
    }

    /// Stops the server.
    pub fn stop(&mut self, how: Stop) {
        let Some(mut postmaster) = self.postmaster.take() else {
            return;
        };
        signal(postmaster.id(), if how == Stop::Fast { "INT" } else { "QUIT" });
        if !within(PATIENCE, || postmaster.try_wait().expect("a child can be waited for").is_some()) {
            let _ = postmaster.kill();
            let _ = postmaster.wait();
            panic!("the server of {} did not stop in {PATIENCE:?}:\n{}", self.dir.display(), self.log());
        }
    }

    /// Stops and starts the server.
    pub fn restart(&mut self, how: Stop) {
        self.stop(how);
        self.start();
    }

    /// Adds lines to `postgresql.conf`.
    pub fn append(&self, text: &str) {
        let file = self.dir.join("postgresql.conf");
        let known = fs::read_to_string(&file).expect("a cluster has a postgresql.conf");
        Host::get().write(&file, &format!("{known}\n{text}"));
    }

    /// Returns what the server has written to its log since its last start.
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    /// Connects to the database `postgres`.
    pub fn connect(&self) -> Client {
        self.connect_to("postgres")
    }

    /// Connects to a database.
    pub fn connect_to(&self, database: &str) -> Client {
        self.config(database).connect(NoTls).unwrap_or_else(|e| panic!("cannot connect to {database}: {e}"))
    }

    /// Connects to the database `postgres` as this role.
    pub fn connect_as(&self, role: &str) -> Client {
        self.config("postgres").user(role).connect(NoTls).unwrap_or_else(|e| panic!("cannot connect as {role}: {e}"))
    }

    /// Returns the parameters for a connection to a database, for a test that changes one of them.
    pub fn config(&self, database: &str) -> Config {
        let mut config = Config::new();
        config.host_path(&self.socket).port(5432).user("postgres").dbname(database);
        config
    }

    /// Connects to the database `postgres`, and creates the extension if necessary.
    pub fn session(&self) -> Client {
        let mut client = self.connect();
        client.batch_execute("CREATE EXTENSION IF NOT EXISTS snowflake_pg").expect("the extension is installed");
        client
    }

    /// Returns a client program of the installation, with the environment variables for a connection to this server.
    pub fn program(&self, name: &str) -> Command {
        self.client(Host::get().program(name))
    }

    /// Returns `pg_regress`, with the environment variables for a connection to this server.
    pub fn pg_regress(&self) -> Command {
        self.client(Host::get().pg_regress())
    }

    /// Returns the command with the environment variables for a connection to this server.
    pub fn client(&self, mut command: Command) -> Command {
        let connection = [("PGPORT", "5432"), ("PGUSER", "postgres"), ("PGDATABASE", "postgres")];
        command.envs(connection).env("PGHOST", &self.socket);
        command
    }

    pub(crate) fn log_path(&self) -> PathBuf {
        self.dir.join("server.log")
    }

    /// Writes the settings to a file that the server reads last, so that they override the settings that a base backup copied.
    pub(crate) fn configure(&self) {
        let quoted = |text: &str| text.replace('\'', "''");
        let mut text = format!(
            "listen_addresses = ''\nport = 5432\nunix_socket_directories = '{}'\n",
            quoted(&self.socket.to_string_lossy())
        );
        for (name, value) in &self.like.settings {
            text.push_str(&format!("{name} = '{}'\n", quoted(value)));
        }
        Host::get().write(&self.dir.join("cluster.conf"), &text);
        let include = "include = 'cluster.conf'\n";
        let main = fs::read_to_string(self.dir.join("postgresql.conf")).expect("a cluster has a postgresql.conf");
        if !main.ends_with(include) {
            self.append(include);
        }
    }

    pub(crate) fn wait_until_up(&mut self) -> Result<(), String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let postmaster = self.postmaster.as_mut().expect("just started");
            if postmaster.try_wait().expect("a child can be waited for").is_some() {
                self.postmaster = None;
                return Err(self.log());
            }
            match self.config("postgres").connect(NoTls) {
                Ok(mut client) => {
                    self.wait_ready(&mut client);
                    return Ok(());
                }
                Err(_) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(20)),
                Err(error) => {
                    self.stop(Stop::Immediate);
                    return Err(format!("{error}\n{}", self.log()));
                }
            }
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        if let Some(mut postmaster) = self.postmaster.take() {
            signal(postmaster.id(), "QUIT");
            let _ = postmaster.wait();
        }
        if std::thread::panicking() {
            eprintln!("log of {}:\n{}", self.dir.display(), self.log());
        }
        let _ = fs::remove_dir_all(&self.dir);
        let _ = fs::remove_dir_all(&self.socket);
        let _ = fs::remove_file(self.dir.with_extension("clock"));
        // The name is released only after all files are removed.
        drop(self.claim.take());
    }
}

/// Stops the server that an earlier run left in this directory. Returns false if there is none. A PID file can outlive its
/// server, and another process can get the same process ID. Therefore, a process is stopped only if this directory is its working
/// directory.
pub(crate) fn stop_stale(dir: &Path, how: Stop) -> bool {
    let Some(pid) = postmaster_pid(dir) else { return false };
    let works_here = || works_in(pid, dir);
    if !works_here() {
        return false;
    }
    signal(pid, if how == Stop::Fast { "INT" } else { "QUIT" });
    // An interrupted run may have left the server frozen.
    signal(pid, "CONT");
    assert!(within(PATIENCE, || !works_here()), "the server of {} did not stop in {PATIENCE:?}", dir.display());
    true
}

/// Returns the process ID in the PID file of a data directory. The file can outlive its server.
pub fn postmaster_pid(dir: &Path) -> Option<u32> {
    fs::read_to_string(dir.join("postmaster.pid")).ok()?.lines().next()?.trim().parse().ok()
}

/// Returns the processes of the server with this data directory.
pub fn processes_in(dir: &Path) -> Vec<u32> {
    pids().filter(|pid| works_in(*pid, dir)).collect()
}

/// Returns the IDs of all processes of the machine.
pub(crate) fn pids() -> impl Iterator<Item = u32> {
    let processes = fs::read_dir("/proc").expect("a Linux system").flatten();
    processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Returns true while this is the working directory of a process. All processes of a server have the server's data directory as
/// their working directory.
pub(crate) fn works_in(pid: u32, dir: &Path) -> bool {
    fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == dir)
}

/// Sends a signal to a process that this harness started, or to a process group, whose ID has a minus sign in front of it.
pub(crate) fn signal(process: impl ToString, name: &str) {
    // This is the shell's built-in `kill`, because a Debian system without procps has no program `kill`.
    let kill = "kill -s \"$0\" -- \"$1\"";
    let _ = command("sh").args(["-c", kill, name]).arg(process.to_string()).stderr(Stdio::null()).status();
}
