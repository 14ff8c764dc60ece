//! A registry, and servers that get their worker IDs from it.

use std::thread;

pub use cluster::SOON;
use cluster::{Answer, Boot, Builder, Cluster, within};

use crate::shop;

pub const SERVERS: usize = 3;

/// A running fleet.
pub struct Fleet {
    pub registry: Cluster,
    /// The servers, each with the machine that it seems to run on.
    pub servers: Vec<(Cluster, Boot)>,
}

fn registry() -> Builder {
    Cluster::builder(&shop::name("-fleet-registry"))
        .unset("shared_preload_libraries")
        .unset("snowflake_pg.worker_id")
        .unset("snowflake_pg.witness_directory")
        .set("fsync", "on")
}

/// Returns the names of the servers.
fn names() -> impl Iterator<Item = String> {
    (1..=SERVERS).map(|number| shop::name(&format!("-fleet-{number}")))
}

impl Fleet {
    /// Configures a server of the fleet. With the shortest lease, heartbeats are a second apart.
    pub fn server(&self, name: &str, machine: &Boot) -> Builder {
        let registry = format!("host={} port=5432 user=postgres dbname=fleet", self.registry.socket().display());
        Cluster::builder(name)
            .unset("snowflake_pg.worker_id")
            .set("snowflake_pg.registry", &registry)
            .set("snowflake_pg.lease", "10min")
            .set("fsync", "on")
            .on(machine)
    }

    /// Starts the registry and the servers, all of them with new data directories.
    pub fn start() -> Fleet {
        stop();
        let mut registry = registry().open_new();
        registry.start();
        registry.connect().batch_execute("CREATE DATABASE fleet").expect("the database can be created");
        let mut owner = registry.connect_to("fleet");
        owner.batch_execute("CREATE EXTENSION snowflake_registry").expect("the extension is installed");
        owner.one::<String>("SELECT snowflake_registry.create_fleet('41:10:12')::text");
        let mut fleet = Fleet { registry, servers: Vec::new() };
        for name in names() {
            let machine = Boot::new(&name);
            fleet.servers.push((fleet.server(&name, &machine).open_new(), machine));
        }
        thread::scope(|scope| fleet.servers.iter_mut().for_each(|(server, _)| drop(scope.spawn(|| server.start()))));
        fleet
    }

    /// Leaves the servers running when this process ends.
    pub fn keep(self) {
        self.servers.into_iter().for_each(|(_, machine)| machine.keep());
    }
}

/// Waits until the server has a worker ID, and returns it.
pub fn worker_id(server: &Cluster) -> String {
    let mut client = server.connect();
    let mut worker = String::new();
    let assigned = within(SOON, || {
        worker = client.one("SHOW snowflake_pg.worker_id");
        worker != "-1"
    });
    assert!(assigned, "the server has no worker ID:\n{}", server.log());
    worker
}

/// Stops the fleet. Returns false if it was not running.
pub fn stop() -> bool {
    let mut stopped = false;
    for name in names() {
        stopped |= Cluster::builder(&name).stop();
        // The end of this value removes the witnesses.
        drop(Boot::new(&name));
    }
    registry().stop() || stopped
}
