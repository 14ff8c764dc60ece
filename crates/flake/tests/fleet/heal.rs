//! Everything works again: nobody is stuck, a newcomer gets a worker ID, and no worker ID is lost.

use std::collections::BTreeMap;
use std::time::Duration;

use flake::fleet::{Ring, Scale};

use crate::invariants::FleetFailure;
use crate::server::IdChoice;
use crate::world::{BEGIN, FleetWorld, HOUR, LONG};

impl FleetWorld {
    pub fn heal(&mut self) {
        self.wire.clear();
        self.ahead = 0;
        for pick in (0..self.reserved.len()).rev() {
            self.release(pick);
        }
        let format = self.registry.fleet.format;
        for server in &mut self.servers {
            (server.cut, server.ahead, server.format) = (false, 0, format);
            server.lease = Duration::from_hours(12);
            if server.fenced() || server.process.as_ref().is_some_and(|process| process.format != format) {
                server.process = None;
            }
        }
        self.start_all();
        // Longer than a quarantine and the longest lease that can have been granted when it began.
        // A floor that comes from the faster of two layouts can be further ahead.
        let mut steps = 12;
        while steps > 0 {
            steps -= 1;
            if steps == 0 && !self.grants() && self.time < BEGIN + 100 * LONG {
                steps = 4;
            }
            self.time += 7 * HOUR;
            self.beat_all();
            for server in self.servers.iter_mut().filter(|server| server.fenced()) {
                server.process = None;
            }
            self.start_all();
        }
        self.beat_all();
        self.check_health();
    }

    /// Returns true if the ring has worker IDs to give.
    fn grants(&self) -> bool {
        let now = self.now();
        let floor = self.registry.fleet.floor.plus(self.registry.scale().margin());
        floor.passed(now) && !self.registry.in_quarantine(now)
    }

    fn start_all(&mut self) {
        for server in 0..self.servers.len() {
            self.start(server);
        }
    }

    fn check_health(&mut self) {
        let format = self.registry.fleet.format;
        let ring = Ring::of(&format.layout);
        let mut holders = BTreeMap::new();
        for server in 0..self.servers.len() {
            let Some(grant) = self.servers[server].grant() else {
                if self.servers.len() <= ring.spare as usize {
                    self.checks.fail(FleetFailure::Stuck("a server gets no worker ID"));
                }
                continue;
            };
            if holders.insert(grant.node, server).is_some() {
                self.checks.fail(FleetFailure::Stuck("two servers hold one worker ID"));
            }
            // A mark that was written under a clock of the future can be above the bound.
            let clock = Scale::new(format).point(self.time).id() as u64;
            let begin = grant.begin(self.servers[server].mark);
            if begin.value() < clock && !self.issue(server, IdChoice::Clock) {
                self.checks.fail(FleetFailure::Stuck("a server with a worker ID issues nothing"));
            }
        }
        let now = self.now();
        let margin = self.registry.scale().margin();
        let leaked = |(node, row): (_, &flake::fleet::RegistryRow)| {
            !holders.contains_key(node) && !row.bound.plus(margin).passed(now)
        };
        if self.registry.rows.iter().any(leaked) {
            self.checks.fail(FleetFailure::Stuck("a worker ID is lost"));
        }
        let newcomer = self.add_server();
        let datacenter = self.servers[newcomer].datacenter;
        let taken = holders.keys().filter(|node| node.datacenter == datacenter && node.worker < ring.spare).count();
        self.start(newcomer);
        self.beat(newcomer);
        if taken < ring.spare as usize && self.servers[newcomer].grant().is_none() {
            self.checks.fail(FleetFailure::Stuck("a newcomer gets no worker ID"));
        }
    }
}
