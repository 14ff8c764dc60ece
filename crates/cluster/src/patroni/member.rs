//! A member of a cluster that Patroni manages.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use postgres::{Client, Config, NoTls};

use super::STEPS;
use crate::nemesis::children_of;
use crate::server::{pids, postmaster_pid, signal, stop_stale, works_in};
use crate::{Answer, Boot, Host, Service, Stop, within};

/// A member: Patroni and its PostgreSQL server, which behave as if they were on a machine of their own.
pub struct PatroniMember {
    /// The name of the member.
    pub name: &'static str,
    /// The address on which PostgreSQL listens on port 5432, and Patroni on port 8008.
    pub address: String,
    /// The memory file system of the machine.
    pub machine: Boot,
    pub(super) directory: PathBuf,
    pub(super) patroni: Option<Service>,
}

impl PatroniMember {
    /// Returns the data directory.
    pub fn dir(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// Returns the directory that stands for the directories of this machine.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns Patroni's configuration file.
    pub fn file(&self) -> PathBuf {
        self.directory.join("patroni.yml")
    }

    /// Starts Patroni, which starts PostgreSQL if it does not run.
    pub fn start(&mut self) {
        assert!(self.patroni.is_none(), "{} runs", self.name);
        let mut patroni = Host::get().debian_program("patroni").expect("`scripts/setup engines` installs Patroni");
        patroni.arg(self.file());
        self.environment(&mut patroni);
        self.patroni = Some(Service::start(patroni, &self.directory.join("patroni.log")));
    }

    /// Kills Patroni. PostgreSQL continues to run.
    pub fn kill_patroni(&mut self) {
        self.patroni.take().expect("Patroni runs").kill();
    }

    /// Sends a signal to Patroni.
    pub fn signal_patroni(&self, name: &str) {
        self.patroni.as_ref().expect("Patroni runs").signal(name);
    }

    /// Stops Patroni and PostgreSQL with SIGSTOP until [`PatroniMember::thaw`] is called, as if the machine were paused. Meanwhile, a
    /// request or a connection to this member waits.
    pub fn freeze(&self) {
        self.signal_all("STOP");
    }

    /// Lets the frozen programs continue.
    pub fn thaw(&self) {
        self.signal_all("CONT");
    }

    /// Sends a signal to Patroni and to all processes of PostgreSQL.
    fn signal_all(&self, name: &str) {
        self.signal_patroni(name);
        if let Some(postmaster) = self.postmaster() {
            signal(postmaster, name);
            children_of(postmaster).iter().for_each(|pid| signal(*pid, name));
        }
    }

    /// Stops Patroni, which stops PostgreSQL.
    pub fn stop(&mut self) {
        self.patroni.take().expect("Patroni runs").stop();
    }

    /// Kills PostgreSQL. Patroni continues to run.
    pub fn kill_postgres(&self) {
        signal(self.postmaster().expect("PostgreSQL runs"), "KILL");
    }

    /// Returns the process ID of the postmaster, if it runs.
    pub fn postmaster(&self) -> Option<u32> {
        postmaster_pid(&self.dir()).filter(|pid| works_in(*pid, &self.dir()))
    }

    /// Kills Patroni and PostgreSQL, and empties the memory file system of the machine.
    pub fn lose_power(&mut self) {
        self.end();
        self.machine.reboot();
    }

    /// Replaces the data directory with a new base backup of the leader.
    pub fn reinitialize(&self) {
        let before = fs::metadata(self.dir().join("PG_VERSION")).and_then(|file| file.created()).ok();
        let mut answer = (0, String::new());
        let accepted = within(STEPS, || {
            answer = self.request("POST", "/reinitialize", "{\"force\": true}").unwrap_or_default();
            answer.0 == 200
        });
        assert!(accepted, "{answer:?}\n{}", self.log());
        let now = || fs::metadata(self.dir().join("PG_VERSION")).and_then(|file| file.created()).ok();
        let copied = || now().is_some_and(|now| Some(now) != before) && self.is_replica();
        assert!(within(STEPS, copied), "{} has no new data directory:\n{}", self.name, self.log());
    }

    /// Restarts PostgreSQL.
    pub fn restart_postgres(&self) {
        let answer = self.request("POST", "/restart", "{}").expect("Patroni answers");
        assert_eq!(answer.0, 200, "{answer:?}\n{}", self.log());
    }

    /// Returns true if this member has the leader lock and its server accepts writes. Patroni has the lock before the server is promoted.
    pub fn is_leader(&self) -> bool {
        let locked = self.request("GET", "/primary", "").is_some_and(|(code, _)| code == 200);
        let writes = |mut client: Client| {
            let row = client.query_one("SELECT pg_is_in_recovery()", &[]);
            row.is_ok_and(|row| !row.get::<_, bool>(0))
        };
        locked && self.try_connect().is_some_and(writes)
    }

    /// Returns true if Patroni says that the server of this member is a running standby.
    pub fn is_replica(&self) -> bool {
        self.request("GET", "/replica", "").is_some_and(|(code, _)| code == 200)
    }

    /// Sends a request to Patroni, and returns the status code and the body of the answer.
    pub fn request(&self, method: &str, path: &str, body: &str) -> Option<(u16, String)> {
        request(&self.address, 8008, method, path, body)
    }

    /// Returns the parameters of a connection to this server.
    pub fn config(&self) -> Config {
        let mut config = Config::new();
        config.host(&self.address).port(5432).user("postgres").password("postgres-secret").dbname("postgres");
        config.connect_timeout(Duration::from_secs(2));
        config
    }

    /// Connects to this server.
    pub fn connect(&self) -> Client {
        self.config().connect(NoTls).unwrap_or_else(|e| panic!("cannot connect to {}: {e}\n{}", self.name, self.log()))
    }

    /// Connects to this server, if it accepts connections.
    pub fn try_connect(&self) -> Option<Client> {
        self.config().connect(NoTls).ok()
    }

    /// Returns the worker ID that the server shows.
    pub fn worker(&self) -> String {
        self.connect().one("SHOW snowflake_pg.worker_id")
    }

    /// Returns true if the server accepts connections and has a worker ID.
    pub fn has_worker(&self) -> bool {
        let row = self.try_connect().and_then(|mut client| client.query_one("SHOW snowflake_pg.worker_id", &[]).ok());
        row.is_some_and(|row| row.get::<_, String>(0) != "-1")
    }

    /// Returns what Patroni and PostgreSQL have written since Patroni was started.
    pub fn log(&self) -> String {
        fs::read_to_string(self.directory.join("patroni.log")).unwrap_or_default()
    }

    /// Lets a program find this member's files only.
    pub fn environment(&self, command: &mut Command) {
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", Host::get().installation().bin.display());
        command.env_clear().env("PATH", path).env("HOME", &self.directory).env("LANG", "C.UTF-8");
    }

    /// Kills Patroni and then PostgreSQL, which is neither a child of Patroni nor in its process group.
    pub(super) fn end(&mut self) {
        if let Some(patroni) = self.patroni.take() {
            patroni.kill();
        }
        // Patroni may have been about to start the server.
        let stopped = within(STEPS, || {
            stop_stale(&self.dir(), Stop::Immediate);
            !runs_in(&self.dir())
        });
        if !stopped {
            eprintln!("the server of {} does not end:\n{}", self.name, self.log());
        }
    }
}

/// Returns true if there is a process that was started with this data directory.
fn runs_in(dir: &Path) -> bool {
    let dir = dir.display().to_string();
    let mut lines = pids().filter_map(|pid| fs::read(format!("/proc/{pid}/cmdline")).ok());
    lines.any(|line| line.split(|byte| *byte == 0).any(|argument| argument == dir.as_bytes()))
}

/// Sends an HTTP request, and returns the status code and the body of the answer. Returns `None` if there is no answer.
pub(super) fn request(address: &str, port: u16, method: &str, path: &str, body: &str) -> Option<(u16, String)> {
    let connect = TcpStream::connect_timeout(&format!("{address}:{port}").parse().ok()?, Duration::from_secs(2));
    let mut stream = connect.ok()?;
    stream.set_read_timeout(Some(STEPS)).ok()?;
    let length = body.len();
    write!(stream, "{method} {path} HTTP/1.0\r\nHost: {address}\r\nContent-Length: {length}\r\n\r\n{body}").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let code = answer.split(' ').nth(1)?.parse().ok()?;
    Some((code, answer.split_once("\r\n\r\n")?.1.into()))
}
