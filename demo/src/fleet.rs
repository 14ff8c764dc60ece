//! A registry with a standby, and servers that get their worker IDs from it.

use std::thread;
use std::time::Duration;

pub use cluster::SOON;
use cluster::{Answer, Boot, Builder, Cluster, Stop, within};

use crate::shop;

/// How many servers are started together.
pub const SERVERS: usize = 3;

/// How long the servers take orders before the registry crashes.
const BEFORE_CRASH: Duration = Duration::from_millis(500);

/// A running fleet.
pub struct RunningFleet {
    /// The server with the registry.
    pub registry: Cluster,
    /// The standby of the registry, or, after a failover, the former registry.
    standby: Cluster,
    /// The servers, each with the machine that it seems to run on.
    pub servers: Vec<(Cluster, Boot)>,
}

/// Configures the registry, or its standby.
fn registry(part: &str) -> Builder {
    Cluster::builder(&shop::name(&format!("-fleet-{part}")))
        .unset("shared_preload_libraries")
        .unset("snowflake_pg.worker_id")
        .unset("snowflake_pg.witness_directory")
        .set("fsync", "on")
}

const REGISTRY: &str = "registry";
const STANDBY: &str = "standby";

/// Returns the name of a server.
fn name(number: usize) -> String {
    shop::name(&format!("-fleet-{number}"))
}

/// Configures a server of the fleet. With the shortest lease, heartbeats are a second apart.
fn server(name: &str, registry: &str, machine: &Boot) -> Builder {
    Cluster::builder(name)
        .unset("snowflake_pg.worker_id")
        .set("snowflake_pg.registry", registry)
        .set("snowflake_pg.lease", "10min")
        .set("fsync", "on")
        .on(machine)
}

impl RunningFleet {
    /// Returns the connection string, which is the same on all servers and remains the same after a failover.
    fn string(&self) -> String {
        let hosts = [&self.registry, &self.standby].map(|server| server.socket().display().to_string()).join(",");
        format!("host={hosts} port=5432 user=postgres dbname=fleet target_session_attrs=read-write")
    }

    /// Configures a server of the fleet.
    pub fn server(&self, name: &str, machine: &Boot) -> Builder {
        server(name, &self.string(), machine)
    }

    /// Starts the registry, its standby and the servers, all of them with new data directories.
    pub fn start() -> RunningFleet {
        stop();
        let mut primary = registry(REGISTRY).open_new();
        primary.start();
        primary.connect().batch_execute("CREATE DATABASE fleet").expect("the database can be created");
        let mut owner = primary.connect_to("fleet");
        owner.batch_execute("CREATE EXTENSION snowflake_registry").expect("the extension is installed");
        owner.one::<String>("SELECT snowflake_registry.create_fleet('41:10:12')::text");
        let standby = primary.kept_standby(registry(STANDBY));
        let mut fleet = RunningFleet { registry: primary, standby, servers: Vec::new() };
        for number in 1..=SERVERS {
            fleet.servers.push(fleet.prepare(number));
        }
        thread::scope(|scope| fleet.servers.iter_mut().for_each(|(server, _)| drop(scope.spawn(|| server.start()))));
        fleet
    }

    fn prepare(&self, number: usize) -> (Cluster, Boot) {
        let name = name(number);
        let machine = Boot::new(&name);
        (self.server(&name, &machine).open_new(), machine)
    }

    /// Crashes the registry, promotes its standby, and starts another server. `while_running` runs at the same time, with the servers
    /// that ran before. Returns what `then` returns, which is called with the other server.
    pub fn fail_over<T>(&mut self, while_running: impl Fn(&Cluster) + Sync, then: impl FnOnce(&Cluster) -> T) -> T {
        let (mut other, machine) = self.prepare(SERVERS + 1);
        let RunningFleet { registry, standby, servers } = self;
        let result = thread::scope(|scope| {
            for (server, _) in servers.iter() {
                scope.spawn(|| while_running(server));
            }
            thread::sleep(BEFORE_CRASH);
            registry.stop(Stop::Immediate);
            standby.promote();
            other.start();
            then(&other)
        });
        std::mem::swap(registry, standby);
        servers.push((other, machine));
        result
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
    for name in (1..=SERVERS + 1).map(name) {
        stopped |= Cluster::builder(&name).stop();
        // The end of this value removes the witnesses.
        drop(Boot::new(&name));
    }
    for part in [STANDBY, REGISTRY] {
        stopped |= registry(part).stop();
    }
    stopped
}
