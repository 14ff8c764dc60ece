//! A monitor and two nodes, each with its own address, home directory and witness, as if they were on different machines.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use cluster::{
    Answer, Boot, Client, Host, Recipe, Scratch, Service, command, found_within, loopback, output, postmaster_pid,
    typed, watch, within,
};
use postgres::{Config, NoTls};

pub const PAGE: &str = "docs/pg_auto_failover.md";

/// The longest wait for a change of the formation.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// The values that the page declares to be examples. An address that contains another one precedes it.
const ADDRESSES: [(&str, usize); 3] = [("10.0.0.10", MONITOR), ("10.0.0.1", 0), ("10.0.0.2", 1)];
const NETWORK: &str = "10.0.0.0/24";
const DATA: [&str; 2] = ["/srv/pg/data", "/srv/pg/monitor"];
const LAYOUT: &str = "41:10:12";
const DIRECTORY: &str = "/etc/snowflake_pg";

/// The place of the monitor among the hosts.
const MONITOR: usize = 2;
const NAMES: [&str; 3] = ["db1", "db2", "monitor"];

/// The monitor and the nodes trust all clients. `pg_autoctl` cannot write these lines itself, because it accepts only addresses that
/// `getifaddrs` lists, and of the loopback network this is one.
const HBA: &str = "host all postgres,pgautofailover_monitor,autoctl_node 127.0.0.0/8 trust
host replication,postgres pgautofailover_replicator 127.0.0.0/8 trust\n";

/// Detects failures in seconds.
const MONITOR_SETTINGS: &str = "shared_buffers = '16MB'
fsync = off
pgautofailover.health_check_period = 500
pgautofailover.health_check_timeout = 2000
pgautofailover.health_check_retry_delay = 500
pgautofailover.node_considered_unhealthy_timeout = 3000
pgautofailover.startup_grace_period = 2000
pgautofailover.primary_demote_timeout = 3000\n";

/// Settings that make a base backup begin at once, and keep the memory small. `pg_autoctl` sets `shared_buffers` to a quarter of
/// the machine's memory.
const NODE_SETTINGS: &str = "shared_buffers = '32MB'
fsync = off
timezone = 'UTC'
checkpoint_completion_target = 0
wal_retrieve_retry_interval = '100ms'\n";

/// Returns the section of the page with this heading.
pub fn section(title: &str) -> Recipe {
    Recipe::of(PAGE, title)
}

struct FormationHost {
    dir: Scratch,
    address: String,
    /// The witness is removed at the end.
    _boot: Boot,
    service: Option<Service>,
}

/// The hosts of a formation. The first two are nodes, and the last one is the monitor.
pub struct Formation {
    /// The layout of the fleet, which replaces the one of the page.
    pub layout: &'static str,
    /// A text in `postgresql.conf` of the second node, and what replaces it before the node runs.
    pub corrected: Option<(&'static str, &'static str)>,
    hosts: Vec<FormationHost>,
    /// Instances of `pg_autoctl` that were killed. The servers that they started are in their process groups.
    killed: Vec<Service>,
}

impl Formation {
    /// Prepares the hosts. `extra` is added to the configuration of both nodes.
    pub fn new(test: &str, extra: &str) -> Formation {
        let host = |n: usize| {
            let name = format!("auto_failover_{test}_{}", NAMES[n]);
            let number = u8::try_from(n).expect("three hosts");
            let dir = Scratch::new(&name);
            let boot = Boot::new(&name);
            for part in ["etc", "run", "sock"] {
                output(Host::get().command("mkdir".as_ref()).arg(dir.0.join(part)));
            }
            let witness = format!("snowflake_pg.witness_directory = '{}'\n", boot.dir().display());
            Host::get().write(&dir.0.join("etc/test.conf"), &format!("{NODE_SETTINGS}{extra}{witness}"));
            for watched in [boot.dir(), &dir.0.join("data")] {
                watch(watched);
            }
            FormationHost { dir, _boot: boot, address: loopback(number), service: None }
        };
        Formation { layout: LAYOUT, corrected: None, hosts: (0..3).map(host).collect(), killed: Vec::new() }
    }

    /// Returns a block as the test types it on a host: with the addresses and paths of the test.
    fn here(&self, host: usize, text: &str) -> String {
        let dir = self.hosts[host].dir.0.display().to_string();
        let mut text = text.replace(DIRECTORY, &format!("{dir}/etc")).replace(NETWORK, "127.0.0.0/8");
        for data in DATA {
            text = text.replace(data, &format!("{dir}/data"));
        }
        for (address, n) in ADDRESSES {
            text = text.replace(address, &self.hosts[n].address);
        }
        text.replace("--auth trust", "--skip-pg-hba")
    }

    fn command(&self, host: usize, text: &str) -> Command {
        let dir = &self.hosts[host].dir.0;
        let mut shell = Host::get().shell(&format!("set -e\n{}", self.here(host, text)));
        // `pg_autoctl` looks for `pg_ctl` in every directory of PATH, and complains about those that it cannot enter.
        shell.env("PATH", format!("{}:/usr/bin:/bin", Host::get().installation().bin.display()));
        shell.env("HOME", dir).env("XDG_RUNTIME_DIR", dir.join("run")).current_dir(dir);
        shell.env("XDG_CONFIG_HOME", dir.join("config")).env("XDG_DATA_HOME", dir.join("share"));
        // Several servers listen on the same port, so that each needs a directory of its own for the socket. `pg_autoctl` passes this
        // directory to the servers that it starts.
        shell.env("PG_REGRESS_SOCK_DIR", dir.join("sock")).env("PGHOST", dir.join("sock")).env("PGUSER", "postgres");
        shell
    }

    /// Types a block into a shell on a host. Each command of the block must succeed.
    pub fn shell(&self, host: usize, text: &str) -> Result<String, String> {
        typed(self.command(host, text), "")
    }

    /// Types a block into psql on a node.
    pub fn psql(&self, node: usize, database: &str, text: &str) -> Result<String, String> {
        let text = &text.replace(LAYOUT, self.layout);
        let psql = format!("psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 -d {database}");
        typed(self.command(node, &psql), text)
    }

    /// Adds lines to a file in the data directory of a host. A path that `pg_basebackup` and `pg_rewind` copy leads to the directory
    /// of the host itself, which is next to the data directory.
    pub fn append(&self, host: usize, file: &str, text: &str) {
        let path = self.data(host).join(file);
        let known = fs::read_to_string(&path).expect("a file of the data directory");
        let text = self.here(host, &text.replace(DIRECTORY, "../etc"));
        Host::get().write(&path, &format!("{known}\n{text}"));
    }

    pub fn data(&self, host: usize) -> PathBuf {
        self.hosts[host].dir.0.join("data")
    }

    /// Runs a block that runs `pg_autoctl`, until the formation is dropped.
    pub fn run(&mut self, host: usize, text: &str) {
        let service = Service::start(self.command(host, &format!("exec {text}")), &self.log_path(host));
        self.hosts[host].service = Some(service);
    }

    fn log_path(&self, host: usize) -> PathBuf {
        self.hosts[host].dir.0.join(format!("pg_autoctl.{}.log", self.killed.len()))
    }

    /// Returns the log of the latest instance of `pg_autoctl`.
    pub fn log(&self, host: usize) -> String {
        self.hosts[host].service.as_ref().map(Service::log).unwrap_or_default()
    }

    /// Sets up the monitor and the first node, without starting the node. Types the first blocks of the page.
    pub fn begin(&mut self, recipe: &mut Recipe) {
        // While `pg_autoctl` creates a monitor, the monitor listens on the port of all addresses, and a second one fails to start.
        let alone = Host::get().alone("auto_failover_monitor");
        self.shell(MONITOR, &recipe.block("sh monitor")).unwrap();
        drop(alone);
        self.append(MONITOR, "pg_hba.conf", HBA);
        self.append(MONITOR, "postgresql.conf", MONITOR_SETTINGS);
        self.run(MONITOR, &recipe.block("sh monitor run"));
        let ready = || self.shell(MONITOR, "pg_autoctl show state --pgdata /srv/pg/monitor").is_ok();
        assert!(within(PATIENCE, ready), "{}", self.log(MONITOR));
        self.shell(0, &recipe.block("sh db1")).unwrap();
        self.append(0, "pg_hba.conf", HBA);
        self.append(0, "postgresql.conf", "include = '../etc/test.conf'\n");
    }

    /// Kills the server of a node, and returns its process ID.
    pub fn kill_server(&self, node: usize) -> u32 {
        let pid = postmaster_pid(&self.data(node)).expect("the server runs");
        output(command("sh").args(["-c", "kill -s KILL \"$0\"", &pid.to_string()]));
        pid
    }

    /// Waits until another server than this one runs on a node.
    pub fn wait_for_server(&self, node: usize, other_than: u32) {
        let other = || postmaster_pid(&self.data(node)).is_some_and(|pid| pid != other_than);
        let runs = || other() && self.connect(node).is_some();
        assert!(within(PATIENCE, runs), "{}", self.log(node));
    }

    /// Kills `pg_autoctl` on a node. Its children end by themselves, but the server continues.
    pub fn kill_keeper(&mut self, node: usize) {
        let mut service = self.hosts[node].service.take().expect("pg_autoctl runs");
        service.signal("KILL");
        // The children notice it only after the process was waited for.
        let ended = || !service.is_running() && service.log().contains("quitting");
        assert!(within(PATIENCE, ended), "{}", service.log());
        self.killed.push(service);
    }

    /// Connects to the server of a node, if it accepts connections.
    fn connect(&self, node: usize) -> Option<Client> {
        let mut config = Config::new();
        config.host(&self.hosts[node].address).user("postgres").dbname("postgres");
        config.connect_timeout(Duration::from_secs(5)).connect(NoTls).ok()
    }

    /// Connects to the server of a node.
    pub fn session(&self, node: usize) -> Client {
        let found = found_within(PATIENCE, || self.connect(node));
        found.unwrap_or_else(|| panic!("{} accepts no connections:\n{}", NAMES[node], self.log(node)))
    }

    /// Returns the parameters of applications: what `pg_autoctl show uri` prints.
    pub fn uri(&self, block: &str) -> Config {
        let printed = self.shell(MONITOR, block).unwrap();
        let mut config: Config = printed.trim().parse().unwrap_or_else(|e| panic!("{e} in {printed}"));
        config.user("postgres");
        config
    }

    /// Returns the state that each node has and that the monitor wants it to have.
    pub fn states(&self) -> Vec<(String, String)> {
        let shown = self.shell(MONITOR, "pg_autoctl show state --json --pgdata /srv/pg/monitor").unwrap_or_default();
        let field = |name: &str| -> Vec<String> {
            let prefix = format!("\"{name}\": \"");
            let value = |line: &str| Some(line.trim().strip_prefix(&prefix)?.split('"').next()?.to_string());
            shown.lines().filter_map(value).collect()
        };
        field("current_group_state").into_iter().zip(field("assigned_group_state")).collect()
    }

    /// Waits until the nodes have these states.
    pub fn wait_for(&self, states: [&str; 2]) {
        let wanted: Vec<(String, String)> = states.iter().map(|state| (state.to_string(), state.to_string())).collect();
        let mut found = Vec::new();
        let reached = || {
            found = self.states();
            found == wanted
        };
        if !within(PATIENCE, reached) {
            let logs = [0, 1].map(|node| self.log(node)).join("\n");
            panic!("{found:?} instead of {states:?}\n{logs}\n{}", self.server_log(0));
        }
    }

    /// Returns what the servers of a node have logged.
    pub fn server_log(&self, node: usize) -> String {
        let files = fs::read_dir(self.data(node).join("log")).into_iter().flatten().flatten();
        files.map(|file| fs::read_to_string(file.path()).unwrap_or_default()).collect()
    }

    /// Returns the worker ID of a node.
    pub fn worker(&self, node: usize) -> String {
        self.session(node).one("SHOW snowflake_pg.worker_id")
    }

    /// Checks that a text was printed, except for the differences between the page and the test.
    pub fn compare(&self, printed: &str, shown: &str) {
        let mut printed = printed.to_string();
        for (address, n) in ADDRESSES {
            printed = printed.replace(&self.hosts[n].address, address);
            printed = printed.replace(&self.data(n).display().to_string(), DATA[0]);
        }
        // Positions in the WAL differ between runs.
        let position = |word: &str| {
            let is_hex = |part: &str| part.chars().all(|c| c.is_ascii_hexdigit());
            word.split_once('/').is_some_and(|(high, low)| is_hex(high) && is_hex(low))
        };
        cluster::compare(&printed, shown, |word| if position(word) { "0/0".into() } else { word.into() }).unwrap();
    }
}

impl Drop for Formation {
    fn drop(&mut self) {
        // All end at the same time, because each takes a second.
        for host in &self.hosts {
            if let Some(service) = &host.service {
                service.signal("TERM");
            }
            if std::thread::panicking() {
                let number = self.hosts.iter().position(|other| other.address == host.address).expect("one of them");
                eprintln!("server of {}:\n{}", NAMES[number], self.server_log(number));
            }
        }
        for host in &mut self.hosts {
            drop(host.service.take());
        }
    }
}
