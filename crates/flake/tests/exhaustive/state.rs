//! A state of the search: a world, and the world with all rules to which it is compared.

use std::hash::{Hash, Hasher};

use flake::fleet::{Grant, Point, RegistryRow, Uuid};
use flake::{Mark, Node};

use crate::bounds::Bounds;
use crate::earlier;
use crate::faults::FleetFault;
use crate::step::Step;
use crate::world::{BEGIN, FleetSetup, FleetWorld, HOUR};

/// Each server has nonces and process numbers of its own, so that the order in which servers act does not change the state.
const APART: u128 = 1_000;

#[derive(Clone)]
pub struct SearchState {
    pub world: FleetWorld,
    /// The same schedule with all rules, if it is compared.
    twin: Option<Box<FleetWorld>>,
    /// The nonces and process numbers of each server that were used, and then those of others.
    used: Vec<(u128, u64)>,
    failure: Option<&'static str>,
}

impl Hash for SearchState {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        for world in std::iter::once(&self.world).chain(self.twin.as_deref()) {
            let (registry, source, newest) = (&world.registry, world.source, world.newest);
            (world.time, world.ahead, registry, source, newest).hash(hasher);
            (world.lost, world.lost_in_quarantine, world.has_lost, &world.reserved).hash(hasher);
            world.history.iter().for_each(|(_, behind, tables)| (behind, tables).hash(hasher));
            (&world.wire, &world.servers, &world.checks).hash(hasher);
        }
        self.used.hash(hasher);
    }
}

fn begin(fault: FleetFault, bounds: &Bounds) -> FleetWorld {
    let mut world =
        FleetWorld::new(FleetSetup { fault, worker_bits: bounds.worker_bits, datacenters: 1, servers: bounds.servers });
    world.places = bounds.places;
    let scale = world.registry.scale();
    let (start, bound) = (Point::ZERO, scale.point(BEGIN + 100 * 24 * HOUR));
    for worker in (0..1 << bounds.worker_bits).filter(|worker| !bounds.free.contains(worker)) {
        let (node, holder) = (Node { datacenter: 0, worker }, Uuid(u128::from(worker) + 100));
        let seen = scale.point(BEGIN);
        let row = RegistryRow { holder, nonce: holder, count: 1, life: 1, start, bound, seen };
        world.registry.rows.insert(node, row);
        world.checks.granted(holder, false, &Grant { node, start, bound, used: Mark::NOTHING_ISSUED });
    }
    if bounds.old {
        earlier::downgrade(&mut world.registry, 0);
    }
    world.keep_behind();
    world
}

impl SearchState {
    pub fn new(fault: FleetFault, bounds: &Bounds) -> SearchState {
        let twin = (bounds.compare && fault != FleetFault::None).then(|| Box::new(begin(FleetFault::None, bounds)));
        let used = (0..=bounds.places as u128).map(|place| ((place + 1) * APART, (place as u64 + 1) * 100)).collect();
        SearchState { world: begin(fault, bounds), twin, used, failure: None }
    }

    /// Returns the state after a step.
    pub fn after(&self, step: Step) -> SearchState {
        let mut state = self.clone();
        let place = step.server().unwrap_or(state.used.len() - 1);
        let mut used = state.used[place];
        let renewed_before = step.server().is_some_and(|server| self.world.a_copy_has_renewed(server));
        for world in std::iter::once(&mut state.world).chain(state.twin.as_deref_mut()) {
            let before = world.checks.failure.is_some();
            (world.nonces, world.numbers) = state.used[place];
            world.act(step);
            world.history.truncate(1);
            world.checks.grants = 0;
            used = (used.0.max(world.nonces), used.1.max(world.numbers));
            assert!(!before, "the search ends with the first failure");
        }
        state.used[place] = used;
        state.failure = state.world.failed().map(crate::invariants::FleetFailure::kind);
        if renewed_before && step.server().is_some_and(|server| state.world.a_copy_was_renewed(server)) {
            state.failure = Some("two servers hold one worker ID");
        }
        // The registry has another state, or an administrator has changed it.
        let replaced = matches!(
            step,
            Step::FailOverBehind
                | Step::SetBack(_)
                | Step::Rebuild
                | Step::RestoreTables
                | Step::Open
                | Step::ChangeLayout
        );
        let until = |world: &FleetWorld| world.registry.fleet.quarantine_until;
        if !replaced && until(&state.world) < until(&self.world) {
            state.failure = Some("a quarantine ends earlier");
        }
        if let (Some(twin), Some(server), None) = (&state.twin, step.server(), state.failure)
            && twin.worker(server).is_some()
            && state.world.worker(server).is_none()
        {
            state.failure = Some("a server has no worker ID");
        }
        state
    }

    pub fn failure(&self) -> Option<&'static str> {
        self.failure
    }

    /// Returns true if the search looks at a step here. `alike` is true if both servers can do the same.
    pub fn can(&self, step: Step, bounds: &Bounds, alike: bool) -> bool {
        let world = &self.world;
        // Servers that have done nothing yet are alike, so the first one of them is the first to act.
        let fresh = |server: usize| self.used[server].1 == (server as u64 + 1) * 100;
        if alike && step.server() == Some(1) && fresh(0) {
            return false;
        }
        let within = match step {
            Step::Pass(_) | Step::Keep(..) | Step::KeepAll(_) => world.time - BEGIN < bounds.hours * HOUR,
            Step::FailOver | Step::FailOverBehind => world.newest.timeline <= bounds.failovers,
            Step::Rebuild => world.newest.system == 1,
            _ => true,
        };
        within && world.makes_sense(step)
    }
}
