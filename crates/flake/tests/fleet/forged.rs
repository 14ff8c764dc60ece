//! A role that may call the registry's functions, and sends what no server would send.

use flake::Node;
use flake::fleet::{Call, Point, RegistryAnswer, RegistryRequest, RenewRequest, Uuid};

use crate::faults::FleetFault;
use crate::random::Random;
use crate::steps::begin;
use crate::world::{FORGER, FleetWorld, GAP, HOUR, LONG, MINUTE};

impl FleetWorld {
    /// Sends a renewal with numbers that would do harm. The role has no nonce of a server, but it keeps its own.
    pub fn forge(&mut self, a: usize, b: usize) {
        let mut random = Random((a << 12 | b) as u64);
        let scale = self.registry.scale();
        let point = |time: i64| scale.point(self.time + time);
        let far =
            [Point::ZERO, point(-LONG), point(-GAP), point(0), point(GAP), point(2 * GAP), point(LONG), Point::MAX];
        let datacenter = random.below(self.datacenters as usize) as u32;
        let worker = random.below(scale.format().layout.max(flake::Part::Worker) as usize + 1) as u32;
        let row = self.registry.rows.get(&Node { datacenter, worker }).copied();
        let (holder, nonce) = (FORGER, Uuid(random.below(3) as u128 + 1));
        let counted = row.map_or(0, |row| row.count);
        let seconds = (scale.time(self.now()) - scale.time(Point::ZERO)) as u64 / 1_000_000;
        let counts = [
            1,
            counted.max(1),
            counted + 1,
            counted + 1_000,
            seconds,
            seconds + 10_000,
            1_000_000_000_000,
            u64::MAX >> 1,
        ];
        let life = self.registry.fleet.life;
        let start = random.pick(&far).max(row.map_or(Point::ZERO, |row| row.bound));
        let request = RegistryRequest::Renew(RenewRequest {
            datacenter,
            worker,
            holder,
            count: random.pick(&counts),
            life: (life + random.below(3) as u64).saturating_sub(1).max(1),
            nonce,
            next_nonce: Uuid(random.below(3) as u128 + 1),
            start: random.pick(&[Point::ZERO, start]),
            bound: random.pick(&far).max(start),
            clock: random.pick(&far),
            lease: std::time::Duration::from_hours(24),
        });
        self.ask(&Call { fleet: None, format: scale.format(), request });
    }
}

#[test]
fn what_no_answer_can_have_contained_changes_nothing() {
    let mut world = begin(FleetFault::None, 3, 2);
    world.up(1);
    let life = world.registry.fleet.life;
    for (count, start, bound) in
        [(1_000_000_000_000, 0, HOUR), (1, 2 * GAP, HOUR), (1, 0, LONG + 2 * GAP), (1, i64::MAX / 2, i64::MAX / 2)]
    {
        for life in [life, life + 1] {
            let point = |time: i64| world.registry.scale().point(world.time + time);
            let call = world.forged(life, count, point(start), point(bound));
            let before = world.registry.clone();
            let refused = flake::fleet::RegistryRefusal::Implausible;
            assert_eq!(world.ask(&call), RegistryAnswer::Refused(refused), "{call:?}");
            assert_eq!(world.registry, before);
        }
    }
}

#[test]
fn the_holder_of_a_nonce_is_renewed_whatever_the_clock_of_the_registry_shows() {
    let mut world = begin(FleetFault::None, 3, 1);
    world.up(0);
    world.quiet(2, MINUTE);
    for ahead in [-9_000 * HOUR, -24 * HOUR, -HOUR] {
        world.ahead = ahead;
        let count = world.registry.rows[&Node { datacenter: 0, worker: 0 }].count;
        world.beat(0);
        assert_eq!(world.registry.rows[&Node { datacenter: 0, worker: 0 }].count, count + 1);
        assert_eq!(world.worker(0), Some(0));
    }
}
