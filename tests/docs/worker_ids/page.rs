//! The sections of docs/worker-ids.md, and the hosts on which their blocks are typed.

use std::fs;
use std::path::PathBuf;

pub use cluster::PATIENCE;
use cluster::{Builder, Cluster, Host, Recipe, sqlstate, typed};

pub const PAGE: &str = "docs/worker-ids.md";

/// The values that the page declares to be examples.
const DATA: &str = "/srv/pg/data";
const DIRECTORY: &str = "/etc/snowflake_pg";
const HOSTS: [&str; 2] = ["db1", "db2"];
/// A contrib library that not every installation has, and the library that replaces it.
const LIBRARY: (&str, &str) = ("pg_stat_statements", "plpgsql");

/// Returns the section of the page with this heading.
pub fn section(title: &str) -> Recipe {
    Recipe::of(PAGE, title)
}

/// A host on the page: its server, and its directory that is outside the data directory.
pub struct PageHost {
    test: String,
    pub server: Cluster,
    pub directory: PathBuf,
}

impl PageHost {
    /// Creates a host with a data directory. `like` adds the settings that the test needs.
    pub fn new(test: &str, host: &str, like: impl FnOnce(Builder) -> Builder) -> PageHost {
        PageHost::with(test, host, |builder| like(builder).create())
    }

    /// Creates a host without a data directory.
    pub fn without_data(test: &str, host: &str, like: impl FnOnce(Builder) -> Builder) -> PageHost {
        PageHost::with(test, host, |builder| like(builder).empty())
    }

    fn with(test: &str, host: &str, make: impl FnOnce(Builder) -> Cluster) -> PageHost {
        // The settings that the page is about are set only by the page's blocks.
        let plain =
            Cluster::builder(&name(test, host)).unset("shared_preload_libraries").unset("snowflake_pg.worker_id");
        let server = make(plain);
        let directory = Host::get().dir(&format!("{}.etc", name(test, host)));
        let _ = fs::remove_dir_all(&directory);
        PageHost { test: test.into(), server, directory }
    }

    /// Returns a block as the test types it: with the paths and hosts of the test.
    pub fn here(&self, text: &str) -> String {
        let mut text = text.replace(DATA, &self.server.dir().display().to_string());
        text = text.replace(DIRECTORY, &self.directory.display().to_string()).replace(LIBRARY.0, LIBRARY.1);
        for host in HOSTS {
            let connection = format!("host={host}");
            if text.contains(&connection) {
                let socket = Host::get().socket_dir(&name(&self.test, host));
                text = text.replace(&connection, &format!("host={}", socket.display()));
            }
        }
        text
    }

    /// Types a block into a shell. Each command of the block must succeed.
    pub fn shell(&self, text: &str) -> Result<String, String> {
        typed(Host::get().shell(&format!("set -e\n{}", self.here(text))), "")
    }

    /// Types a block into psql.
    pub fn psql(&self, text: &str) -> Result<String, String> {
        let mut psql = self.server.psql();
        psql.args(["--tuples-only", "--no-align"]);
        typed(psql, &self.here(text))
    }

    /// Adds a block to `postgresql.conf`.
    pub fn configure(&self, text: &str) {
        self.server.append(&self.here(text));
    }

    /// Replaces the directories of other hosts in `postgresql.conf` with this host's directory. In reality, a path that was
    /// copied leads to the directory of the host itself, but here each host has a different path.
    pub fn localize(&self) {
        let file = self.server.dir().join("postgresql.conf");
        let mut text = fs::read_to_string(&file).expect("a server has a postgresql.conf");
        for host in HOSTS {
            let directory = Host::get().dir(&format!("{}.etc", name(&self.test, host)));
            text = text.replace(&directory.display().to_string(), &self.directory.display().to_string());
        }
        Host::get().write(&file, &text);
    }

    /// Starts the server with a block. If the server does not start, the error is the text of its log.
    pub fn start_by(&mut self, text: &str, environment: &[(&str, &str)]) -> Result<(), String> {
        let mut shell = Host::get().shell(&self.here(text));
        // HOSTNAME must not be the name of the machine on which the tests run.
        shell.env_remove("HOSTNAME").envs(environment.iter().copied());
        self.server.try_start_by(shell)
    }

    /// Returns what the page's query shows: the worker ID, the kind of its source, and the file in which it is set, if any.
    pub fn origin(&self) -> (String, String, Option<String>) {
        let mut recipe = section("How do I give every server its worker ID?");
        let (_, query) = (recipe.block("conf"), recipe.block("sql"));
        let row = self.server.connect().query_one(query.trim_end().trim_end_matches(';'), &[]).expect("one row");
        (row.get(0), row.get(1), row.get(2))
    }

    /// Inserts rows, and returns their IDs. If the server raises an error, returns its message.
    pub fn insert(&self, rows: usize) -> Result<Vec<i64>, String> {
        let name = self.server.socket().file_stem().expect("a name").to_string_lossy().into_owned();
        let insert =
            format!("INSERT INTO orders (customer) SELECT '{name}' FROM generate_series(1, {rows}) RETURNING id");
        let inserted = self.server.connect().query(&insert, &[]).map_err(|error| sqlstate(&error).1)?;
        Ok(inserted.iter().map(|row| row.get(0)).collect())
    }
}

impl Drop for PageHost {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn name(test: &str, host: &str) -> String {
    format!("recipes_{test}_{host}")
}
