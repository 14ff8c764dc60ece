//! The steps of directed schedules.

use flake::fleet::Registry;

use crate::faults::FleetFault;
use crate::invariants::FleetFailure;
use crate::world::{FleetSetup, FleetWorld, GAP};

impl FleetWorld {
    pub fn up(&mut self, server: usize) {
        self.start(server);
        self.beat(server);
        self.beat(server);
    }

    /// Heartbeats while time passes.
    pub fn quiet(&mut self, times: usize, step: i64) {
        for _ in 0..times {
            self.time += step;
            self.beat_all();
        }
    }

    /// Another host runs the registry, with this state and on the next timeline.
    pub fn promote(&mut self, state: &Registry) {
        self.lost |= self.registry != *state;
        self.registry = state.clone();
        self.newest.timeline += 1;
        self.source.timeline = self.newest.timeline;
    }

    /// The server is cut off from the registry, and goes on.
    pub fn cut(&mut self, server: usize) {
        self.servers[server].cut = true;
    }

    pub fn join(&mut self, server: usize) {
        self.servers[server].cut = false;
    }

    pub fn off(&mut self, server: usize) {
        self.servers[server].reboot();
    }

    /// The next claim in the ring gets this worker ID, if it is free.
    pub fn turn(&mut self, worker: u32) {
        self.registry.cursors.entry(0).or_default().ring = worker;
    }

    /// The time at which the registry's clock shows the end of the quarantine.
    pub fn end_of_quarantine(&self) -> i64 {
        self.registry.scale().time(self.registry.fleet.quarantine_until) as i64 + GAP
    }

    /// The time at which the registry's clock shows the server's bound.
    pub fn bound(&self, server: usize) -> i64 {
        let grant = self.servers[server].grant().expect("the server has a worker ID");
        self.registry.scale().time(grant.bound) as i64 - self.ahead
    }
}

/// Returns a world with one datacenter.
pub fn begin(fault: FleetFault, worker_bits: u32, servers: usize) -> FleetWorld {
    FleetWorld::new(FleetSetup { fault, worker_bits, datacenters: 1, servers })
}

/// Runs a schedule with 8 worker IDs, of which two are spare.
pub fn run(fault: FleetFault, schedule: impl Fn(&mut FleetWorld)) -> Option<&'static str> {
    let mut world = begin(fault, 3, 4);
    schedule(&mut world);
    world.failed().map(FleetFailure::kind)
}
