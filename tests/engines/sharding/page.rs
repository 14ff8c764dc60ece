//! The sections of docs/sharding.md, and the hosts on which their blocks are typed.

use cluster::{Builder, Client, Cluster, Host, Recipe, settings, typed};

pub const PAGE: &str = "docs/sharding.md";

/// The hosts that the page declares to be examples. No name is the beginning of a later one.
const HOSTS: [&str; 6] = ["registry.example", "proxy", "shard1", "shard2", "shard3", "db1"];

/// The database of the page.
pub const SHOP: &str = "shop";

/// Returns the section of the page with this heading.
pub fn section(title: &str) -> Recipe {
    Recipe::of(PAGE, title)
}

/// How the servers of a test get their worker IDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workers {
    /// A registry assigns them, as the page recommends.
    Registry,
    /// Each host has its own in its configuration.
    Configured,
    /// All hosts have the worker ID of the page's example.
    Same,
}

/// The hosts of a test.
pub struct ShardHosts {
    test: &'static str,
    workers: Workers,
    /// The registry, which starts before the other servers and ends after them.
    _registry: Option<Cluster>,
}

impl ShardHosts {
    pub fn new(test: &'static str, workers: Workers, layout: &str) -> ShardHosts {
        let mut hosts = ShardHosts { test, workers, _registry: None };
        if workers == Workers::Registry {
            hosts._registry = Some(hosts.registry(layout));
        }
        hosts
    }

    fn registry(&self, layout: &str) -> Cluster {
        let registry = self.builder("registry.example").unset("shared_preload_libraries").start();
        registry.connect().batch_execute("CREATE DATABASE fleet").expect("a superuser may");
        let create = format!(
            "CREATE ROLE fleet LOGIN; CREATE EXTENSION snowflake_registry; SELECT snowflake_registry.create_fleet('{layout}');
             SELECT snowflake_registry.grant_server('fleet')"
        );
        registry.connect_to("fleet").batch_execute(&create).expect("the extension is installed");
        registry
    }

    fn builder(&self, host: &str) -> Builder {
        let name = format!("sharding_{}_{}", self.test, host.trim_end_matches(".example"));
        Cluster::builder(&name).unset("snowflake_pg.worker_id")
    }

    /// Starts a server with an empty database for the page's statements, and with the worker ID that the page gives it. The control
    /// is a server with the worker ID of another one.
    pub fn start(&self, host: &str, change: impl FnOnce(Builder) -> Builder) -> Cluster {
        let [registry, configured] = section("Worker IDs of shards").rest(["conf registry", "conf configured"]);
        let block = if self.workers == Workers::Registry { registry } else { configured };
        let mut builder = self.builder(host);
        for (name, value) in settings(&block) {
            builder = builder.set(name, &self.here(value));
        }
        if self.workers == Workers::Configured {
            let number = HOSTS.iter().position(|known| *known == host).expect("a host of the page");
            builder = builder.set("snowflake_pg.worker_id", &number.to_string());
        }
        let server = change(builder).start();
        server.connect().batch_execute("CREATE DATABASE shop").expect("a superuser may");
        server
    }

    /// Returns a block as the test types it: with the sockets of the test.
    pub fn here(&self, text: &str) -> String {
        HOSTS.iter().fold(text.to_string(), |text, host| {
            let connection = format!("host={host}");
            if !text.contains(&connection) {
                return text;
            }
            let name = format!("sharding_{}_{}", self.test, host.trim_end_matches(".example"));
            text.replace(&connection, &format!("host={}", Host::get().socket_dir(&name).display()))
        })
    }

    /// Types a block into psql on this server. The error is what psql writes to stderr.
    pub fn psql(&self, server: &Cluster, text: &str) -> Result<String, String> {
        let mut psql = server.psql();
        psql.args(["-d", SHOP]);
        typed(psql, &self.here(text))
    }

    /// Types a block into a shell. Each command of the block must succeed.
    pub fn shell(&self, text: &str) -> Result<String, String> {
        typed(Host::get().shell(&format!("set -e\n{}", self.here(text))), "")
    }

    /// Types a block into psql, and checks that psql prints what the page shows.
    pub fn check(&self, server: &Cluster, text: &str, shown: &str) {
        compare(&self.psql(server, text).unwrap(), shown).unwrap_or_else(|reason| panic!("{text}\n{reason}"));
    }
}

/// Compares what psql has printed with what the page shows, except for the widths of columns.
pub fn compare(printed: &str, shown: &str) -> Result<(), String> {
    cluster::compare(printed, shown, str::to_string)
}

/// Connects to the database of the page.
pub fn shop(server: &Cluster) -> Client {
    server.connect_to(SHOP)
}
