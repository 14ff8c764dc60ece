//! The sections of docs/registry.md, and the hosts on which their blocks are typed.

use std::thread;
use std::time::Duration;

pub use cluster::SOON;
use cluster::{
    Answer, Ask, Builder, Cluster, History, Host, Load, Recipe, Scratch, assert_caught, command, ensure, output, typed,
    within,
};

pub const PAGE: &str = "docs/registry.md";

/// The values that the page declares to be examples.
const HOSTS: [&str; 5] = ["registry2.example", "registry.example", "db1", "db2", "db3"];
const DATA: &str = "/srv/pg/data";
const DIRECTORY: &str = "/etc/snowflake_pg";

/// Returns the section of the page with this heading.
pub fn section(title: &str) -> Recipe {
    Recipe::of(PAGE, title)
}

/// The hosts of a test, and the directory that is outside of the data directories.
pub struct FleetHosts {
    test: &'static str,
    directory: Scratch,
}

impl FleetHosts {
    pub fn new(test: &'static str) -> FleetHosts {
        FleetHosts { test, directory: Scratch::new(&format!("fleet_page_{test}.etc")) }
    }

    fn name(&self, host: &str) -> String {
        format!("fleet_page_{}_{}", self.test, host.trim_end_matches(".example"))
    }

    /// Configures a server without the settings that the page is about.
    pub fn builder(&self, host: &str) -> Builder {
        Cluster::builder(&self.name(host)).unset("shared_preload_libraries").unset("snowflake_pg.worker_id")
    }

    /// Starts a server with a registry, which has the given layout.
    pub fn registry(&self, host: &str, layout: &str) -> Cluster {
        self.registry_of(self.builder(host), layout)
    }

    /// Starts this server with a registry.
    pub fn registry_of(&self, builder: Builder, layout: &str) -> Cluster {
        let registry = builder.start();
        let mut setup = section("Set up the registry");
        let text = setup.block("sql registry").replace("'41:10:12'", &format!("'{layout}'"));
        psql(&registry, "postgres", &text).unwrap();
        registry
    }

    /// Configures a server of the fleet as the page says. Its heartbeats are a second apart.
    pub fn server(&self, host: &str) -> Builder {
        let mut builder = self.builder(host).set("snowflake_pg.lease", "10min");
        for (name, value) in cluster::settings(&section("Configure the servers").block("conf server")) {
            builder = builder.set(name, &self.here(value));
        }
        builder
    }

    /// Starts a server of the fleet. Waits until it has this worker ID, and until the registry has received another heartbeat.
    pub fn join(&self, server: Builder, worker: i32, registry: &Cluster) -> Cluster {
        let server = server.start();
        wait_for_worker(&server, worker);
        wait_for_heartbeat(registry, worker);
        server
    }

    /// Tells a server that the registry is in the second host.
    pub fn move_to_second(&self, server: &mut Cluster) {
        server.set("snowflake_pg.registry", &self.here("host=registry2.example dbname=fleet user=fleet"));
        server.reload();
    }

    /// Returns a block as the test types it: with the sockets and paths of the test.
    pub fn here(&self, text: &str) -> String {
        let mut text = text.replace(DIRECTORY, &self.directory.0.display().to_string());
        for host in HOSTS.iter().filter(|host| text.contains(**host)).collect::<Vec<_>>() {
            text = text.replace(host, &Host::get().socket_dir(&self.name(host)).display().to_string());
        }
        text
    }

    /// Types a block into a shell on the host of this server. Each command of the block must succeed.
    pub fn shell(&self, text: &str, server: &Cluster) -> Result<String, String> {
        let text = self.here(text).replace(DATA, &server.dir().display().to_string());
        let mut shell = Host::get().shell(&format!("set -e\n{text}"));
        shell.current_dir(&self.directory.0);
        typed(shell, "")
    }
}

/// Types a block into psql.
pub fn psql(server: &Cluster, database: &str, text: &str) -> Result<String, String> {
    let mut psql = server.psql();
    psql.args(["-d", database]);
    typed(psql, text)
}

/// Waits until psql prints what the page shows, except for times, IDs, hosts and paths.
pub fn check(server: &Cluster, database: &str, text: &str, shown: &str) {
    let mut result = Ok(());
    within(SOON, || {
        result = compare(&psql(server, database, text).unwrap(), shown);
        result.is_ok()
    });
    result.unwrap_or_else(|reason| panic!("{text}\n{reason}"));
}

/// Types the next blocks of a section, and checks that psql prints what the page shows.
pub fn check_next(recipe: &mut Recipe, info: &str, server: &Cluster, database: &str) {
    let (text, shown) = (recipe.block(info), recipe.block("text"));
    check(server, database, &text, &shown);
}

/// Compares what psql has printed with what the page shows, except for times, IDs, hosts and paths.
fn compare(printed: &str, shown: &str) -> Result<(), String> {
    let machine = output(command("uname").arg("-n"));
    cluster::compare(printed, shown, |word| known(word, &machine))
}

#[test]
fn an_output_that_differs_from_the_page_is_caught() {
    let row = " worker_id | granted_until\n-----------+----------------------------\n         0 | 2026-11-23 06:11:04.527+00\n";
    compare(row, &row.replace("06:11:04.527", "07:00:00").replace("--", "-")).unwrap();
    for (from, to) in [("0 |", "1 |"), ("granted_until", "granted"), ("2026-11-23 06:11:04.527+00", "")] {
        assert_caught(compare(row, &row.replace(from, to)), "but the page shows");
    }
}

/// Waits until the log of a server contains what the page shows.
pub fn check_log(server: &Cluster, shown: &str) {
    let machine = output(command("uname").arg("-n"));
    let words = |line: &str| line.split_whitespace().map(|word| known(word, &machine)).collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = shown.lines().map(words).collect();
    let logged = || {
        let log: Vec<String> = server.log().lines().map(words).collect();
        lines.iter().all(|line| log.iter().any(|logged| logged.contains(line.as_str())))
    };
    assert!(within(SOON, logged), "no\n{shown}\nin\n{}", server.log());
}

/// Returns a word, or what it stands for if it differs between runs and hosts: a time, an ID, a machine, or a path.
fn known(word: &str, machine: &str) -> String {
    let bare = word.trim_matches(|c: char| "\",.".contains(c));
    let digits = bare.chars().filter(char::is_ascii_digit).count();
    if digits >= 6 && bare.chars().all(|c| c.is_ascii_hexdigit() || "-+:.TZ".contains(c)) {
        "*".into()
    } else if bare == machine || HOSTS.contains(&bare) {
        "HOST".into()
    } else if bare.starts_with('/') {
        "PATH".into()
    } else {
        word.into()
    }
}

/// Returns true if a new session gets an ID.
pub fn issues(server: &Cluster) -> bool {
    server.session().query("SELECT snowflake_nextval()", &[]).is_ok()
}

/// Checks that servers that issue IDs at the same time, as soon as each of them issues IDs, issue none twice.
pub fn check_together(fleet: &[&Cluster]) -> Result<(), String> {
    for server in fleet {
        ensure!(within(SOON, || issues(server)), "a server issues no IDs:\n{}", server.log());
    }
    let loads: Vec<Load> = fleet.iter().map(|server| Load::start(server, 2, Ask::READING, "")).collect();
    thread::sleep(Duration::from_secs(3));
    let mut ledger = History::default();
    loads.into_iter().for_each(|load| ledger.merge(load.finish()));
    ledger.check(100)
}

/// Waits until the server has this worker ID and issues IDs.
pub fn wait_for_worker(server: &Cluster, worker: i32) {
    let mut session = server.session();
    let issues = || {
        session.query("SELECT snowflake_nextval()", &[]).is_ok()
            && session.one::<String>("SHOW snowflake_pg.worker_id") == worker.to_string()
    };
    assert!(within(SOON, issues), "the server does not have worker ID {worker}:\n{}", server.log());
}

/// Waits until the registry has received a heartbeat after this call from a server with this worker ID.
pub fn wait_for_heartbeat(registry: &Cluster, worker: i32) {
    let mut client = registry.connect_to("fleet");
    let now: String = client.one("SELECT clock_timestamp()::text");
    let seen =
        format!("SELECT EXISTS (SELECT FROM snowflake_registry.servers WHERE worker_id = {worker} AND seen > '{now}')");
    assert!(within(SOON, || client.one(&seen)), "no heartbeat of worker ID {worker}");
}
