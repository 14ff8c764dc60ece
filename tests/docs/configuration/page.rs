//! docs/configuration.md, and the hosts on which it is typed.

use std::collections::VecDeque;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use cluster::{Builder, Cluster, Host, sqlstate, typed};

/// Longest wait for something that comes within seconds.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// What the page declares to be examples.
const DATA: &str = "/srv/pg/data";
const DIRECTORY: &str = "/etc/snowflake_pg";
const HOSTS: [&str; 2] = ["db1", "db2"];
/// A library of contrib, which not every installation has.
const LIBRARY: (&str, &str) = ("pg_stat_statements", "plpgsql");

/// The blocks of a section, typed one after the other.
pub struct Recipe {
    title: String,
    blocks: VecDeque<(String, String)>,
}

impl Recipe {
    /// The section with this headline.
    pub fn of(title: &str) -> Recipe {
        Recipe::all().into_iter().find(|recipe| recipe.title == title).expect("a section of the page")
    }

    /// Those of the sections that have blocks.
    pub fn titles() -> Vec<String> {
        Recipe::all().into_iter().map(|recipe| recipe.title).collect()
    }

    /// The next block, which must be for this language and place.
    pub fn block(&mut self, info: &str) -> String {
        let next = self.blocks.pop_front();
        let (found, text) = next.unwrap_or_else(|| panic!("{:?} has no {info:?} any more", self.title));
        assert_eq!(found, info, "the next block of {:?}", self.title);
        text
    }

    /// True at the end.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    fn all() -> Vec<Recipe> {
        let sections = cluster::sections(&cluster::page("docs/configuration.md"));
        sections.into_iter().map(|section| Recipe { title: section.title, blocks: section.blocks.into() }).collect()
    }
}

/// A host of the page: its server, and its directory that belongs to no server.
pub struct Machine {
    test: String,
    pub server: Cluster,
    pub directory: PathBuf,
}

impl Machine {
    /// A host with a data directory, and what the test wants of the server.
    pub fn new(test: &str, host: &str, like: impl FnOnce(Builder) -> Builder) -> Machine {
        Machine::with(test, host, |builder| like(builder).create())
    }

    /// A host without a data directory.
    pub fn without_data(test: &str, host: &str, like: impl FnOnce(Builder) -> Builder) -> Machine {
        Machine::with(test, host, |builder| like(builder).empty())
    }

    fn with(test: &str, host: &str, make: impl FnOnce(Builder) -> Cluster) -> Machine {
        // All that the page is about is set by what it says alone.
        let plain =
            Cluster::builder(&name(test, host)).unset("shared_preload_libraries").unset("snowflake_pg.worker_id");
        let server = make(plain);
        let directory = Host::get().dir(&format!("{}.etc", name(test, host)));
        let _ = fs::remove_dir_all(&directory);
        Machine { test: test.into(), server, directory }
    }

    /// A block as it is typed here: with the paths and hosts of the test.
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

    /// Types a block at the shell, each command of which has to work.
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
        let file = self.server.dir().join("postgresql.conf");
        let known = fs::read_to_string(&file).expect("a cluster has a postgresql.conf");
        Host::get().write(&file, &format!("{known}\n{}", self.here(text)));
    }

    /// On a host of its own a path that was copied leads to the host's directory: here each has another path.
    pub fn localize(&self) {
        let file = self.server.dir().join("postgresql.conf");
        let mut text = fs::read_to_string(&file).expect("a server has a postgresql.conf");
        for host in HOSTS {
            let directory = Host::get().dir(&format!("{}.etc", name(&self.test, host)));
            text = text.replace(&directory.display().to_string(), &self.directory.display().to_string());
        }
        Host::get().write(&file, &text);
    }

    /// Starts the server with a block; an error is what was written to the log.
    pub fn start_by(&mut self, text: &str, environment: &[(&str, &str)]) -> Result<(), String> {
        let mut shell = Host::get().shell(&self.here(text));
        // Not the name of the machine on which the tests run.
        shell.env_remove("HOSTNAME").envs(environment.iter().copied());
        self.server.try_start_by(shell)
    }

    /// What the page's query shows: the worker ID, the kind of its source, and the file it is from, if any.
    pub fn origin(&self) -> (String, String, Option<String>) {
        let mut recipe = Recipe::of("How do I give every server its worker ID?");
        let (_, query) = (recipe.block("conf"), recipe.block("sql"));
        let row = self.server.connect().query_one(query.trim_end().trim_end_matches(';'), &[]).expect("one row");
        (row.get(0), row.get(1), row.get(2))
    }

    /// Inserts rows, and returns their IDs; an error is the server's.
    pub fn insert(&self, rows: usize) -> Result<Vec<i64>, String> {
        let name = self.server.socket().file_stem().expect("a name").to_string_lossy().into_owned();
        let insert =
            format!("INSERT INTO orders (customer) SELECT '{name}' FROM generate_series(1, {rows}) RETURNING id");
        let inserted = self.server.connect().query(&insert, &[]).map_err(|error| sqlstate(&error).1)?;
        Ok(inserted.iter().map(|row| row.get(0)).collect())
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn name(test: &str, host: &str) -> String {
    format!("recipes_{test}_{host}")
}
