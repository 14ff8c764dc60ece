//! A process that issues IDs itself, in one thread or in several: up to the bound of a grant, or below a mark that it stores.
#![cfg(not(loom))]

mod common;

use std::cell::Cell;
use std::collections::HashSet;
use std::thread;
use std::time::{Duration, Instant};

use common::forall;
use common::granted::{assert_ascends, granted, member, node, point, twitter};
use common::machine::{HOUR, MS, MachineClocks, RULES, SECOND};
use flake::fleet::{Grant, Point, micros};
use flake::{Issuer, MAX_LEAD, MAX_WINDOW, Mark, Nanos, NoPlan, Node, Obstacle, Part, Reading, StartError};
use proptest::prelude::*;

/// Issues IDs until there is an obstacle other than the lead, while the clock runs.
fn exhaust(issuer: &Issuer, machine: &mut MachineClocks) -> (Vec<i64>, Obstacle) {
    let mut ids = Vec::new();
    loop {
        match issuer.next_ids(4_096, || machine.monotonic) {
            Ok(more) => ids.extend(more),
            Err(Obstacle::Throttled(pause)) => machine.run(pause.as_nanos() as Nanos),
            Err(obstacle) => return (ids, obstacle),
        }
    }
}

#[test]
fn a_grant_is_used_up_to_its_bound_and_no_further() {
    let (format, mut machine) = (twitter(), MachineClocks::new());
    let (mut grant, issuer) = granted(&mut machine, SECOND);
    let (ids, obstacle) = exhaust(&issuer, &mut machine);
    assert!(matches!(obstacle, Obstacle::NotReserved(_)), "{obstacle:?}");
    assert_ascends(&ids);
    assert_eq!(format.split(ids[0]).unwrap().node, node(5));
    // The bound is the first ID of a tick, over all nodes, so the last ID of this node is in the tick before.
    assert_eq!(ids.len(), 1_000 * 4_096);
    assert!(*ids.last().unwrap() <= grant.bound.id() && ids[0] >= grant.start.id());
    grant.bound = point(format, machine.wall + 2 * SECOND);
    assert!(issuer.raise(&grant), "the renewed grant");
    let (more, _) = exhaust(&issuer, &mut machine);
    assert!(more[0] > *ids.last().unwrap());
    assert!(*more.last().unwrap() <= grant.bound.id());
    assert_ascends(&more);
}

#[test]
fn another_grant_raises_nothing() {
    let (format, mut machine) = (twitter(), MachineClocks::new());
    let (first, issuer) = granted(&mut machine, SECOND);
    exhaust(&issuer, &mut machine);
    let bound = point(format, machine.wall + HOUR);
    // The same worker ID, lost and claimed again: another holder had it in between.
    let later = Grant { start: point(format, machine.wall), bound, ..first };
    assert!(!issuer.raise(&later) && !issuer.raise(&Grant { node: node(6), bound, ..first }));
    assert!(matches!(issuer.next_id(|| machine.monotonic), Err(Obstacle::NotReserved(_))));
    // A lower bound takes nothing away.
    assert!(issuer.raise(&Grant { bound, ..first }) && issuer.raise(&first));
    assert!(issuer.next_id(|| machine.monotonic).is_ok());
}

#[test]
fn a_grant_begins_at_its_start_if_the_clock_is_behind() {
    let mut machine = MachineClocks::new();
    let (behind, _) = granted(&mut machine, SECOND);
    machine.step(-(2 * HOUR as i64));
    let issuer = Issuer::of_grant(&member(twitter()), &behind, machine.read()).unwrap();
    let id = issuer.next_id(|| machine.monotonic).unwrap();
    assert!(id >= behind.start.id());
    assert_eq!(id >> 22, behind.start.id() >> 22, "the first ID is in the tick of the start");
}

/// A process with a mark that is stored in `mark`.
struct IssuerProcess {
    issuer: Issuer,
    mark: Option<Mark>,
}

impl IssuerProcess {
    fn start(mark: Option<Mark>, machine: &mut MachineClocks) -> IssuerProcess {
        let begin = mark.unwrap_or(Mark::NOTHING_ISSUED);
        IssuerProcess { issuer: Issuer::start(&twitter(), node(7), begin, machine.read()).unwrap(), mark }
    }

    /// Stores the next mark, which takes 3 ms.
    fn reserve(&mut self, needed: u64, machine: &mut MachineClocks) {
        let planned = self.issuer.reserve(machine.monotonic, needed).unwrap();
        assert!(self.mark.is_none_or(|mark| mark <= planned.mark()), "{:?} after {:?}", planned.mark(), self.mark);
        self.mark = Some(planned.mark());
        machine.run(3 * MS);
        planned.publish(machine.monotonic);
    }

    fn issue(&mut self, count: usize, machine: &mut MachineClocks) -> Vec<i64> {
        let mut ids = Vec::new();
        while ids.len() < count {
            match self.issuer.next_id(|| machine.monotonic) {
                Ok(id) => ids.push(id),
                Err(Obstacle::NotReserved(needed)) => self.reserve(needed, machine),
                Err(Obstacle::Throttled(pause)) => machine.run(pause.as_nanos() as Nanos),
                Err(obstacle) => panic!("{obstacle:?}"),
            }
        }
        ids
    }
}

/// Returns how many IDs a process repeats that starts after another one, with the clock set back by a second.
fn repeated_after_a_restart(keeps_mark: bool) -> usize {
    let mut machine = MachineClocks::new();
    let mut first = IssuerProcess::start(None, &mut machine);
    let before: HashSet<_> = first.issue(100_000, &mut machine).into_iter().collect();
    machine.step(-(SECOND as i64));
    let mut second = IssuerProcess::start(first.mark.filter(|_| keeps_mark), &mut machine);
    let after = second.issue(6_000_000, &mut machine);
    assert_ascends(&after);
    after.iter().filter(|id| before.contains(id)).count()
}

#[test]
fn a_process_that_stores_its_mark_repeats_no_id_after_a_restart() {
    assert_eq!(repeated_after_a_restart(true), 0);
}

#[test]
fn a_process_that_forgets_its_mark_is_caught() {
    assert_ne!(repeated_after_a_restart(false), 0, "no ID repeats without the mark, so the test above shows nothing");
}

#[test]
fn every_id_is_below_the_mark_that_was_stored_before() {
    let mut machine = MachineClocks::new();
    let mut process = IssuerProcess::start(None, &mut machine);
    assert!(matches!(process.issuer.next_id(|| machine.monotonic), Err(Obstacle::NotReserved(_))));
    for _ in 0..200 {
        machine.run(70 * MS);
        for id in process.issue(500, &mut machine) {
            assert!((id as u64) < process.mark.unwrap().value());
        }
    }
    let ahead = process.mark.unwrap().value() - point(twitter(), machine.wall).id() as u64;
    assert!(ahead >> 22 <= (MAX_WINDOW + SECOND) / MS, "the mark is {} ticks ahead", ahead >> 22);
}

#[test]
fn no_mark_is_lower_than_one_that_may_be_stored() {
    let mut machine = MachineClocks::new();
    let mut process = IssuerProcess::start(None, &mut machine);
    // Windows that grow, because the reservations are extended late.
    for _ in 0..8 {
        process.issue(1, &mut machine);
        machine.run(12 * SECOND);
    }
    process.issue(1, &mut machine);
    // Extended in advance again and again, the windows shrink. `reserve` compares the marks.
    for _ in 0..20 {
        process.reserve(0, &mut machine);
    }
    // A mark that was stored, but whose reservation was not published.
    machine.run(60 * SECOND);
    let late = process.issuer.reserve(machine.monotonic + 5 * SECOND, 0).unwrap().mark();
    let next = process.issuer.reserve(machine.monotonic, 0).unwrap().mark();
    assert!(next >= late, "{next:?} after {late:?}");
}

#[test]
fn one_thread_at_a_time_stores_a_mark() {
    let mut machine = MachineClocks::new();
    let issuer = IssuerProcess::start(None, &mut machine).issuer;
    let planned = issuer.reserve(machine.monotonic, 0).unwrap();
    assert_eq!(issuer.reserve(machine.monotonic, 0).err(), Some(NoPlan::Busy));
    planned.publish(machine.monotonic);
    assert!(issuer.next_id(|| machine.monotonic).is_ok());
    // A thread that could not store its mark.
    machine.run(HOUR);
    drop(issuer.reserve(machine.monotonic, 0).unwrap());
    assert!(matches!(issuer.next_id(|| machine.monotonic), Err(Obstacle::NotReserved(_))));
    assert!(issuer.reserve(machine.monotonic, 0).is_ok());
}

#[test]
fn an_issuer_of_a_grant_has_no_reservations() {
    let mut machine = MachineClocks::new();
    let (grant, issuer) = granted(&mut machine, SECOND);
    exhaust(&issuer, &mut machine);
    assert_eq!(issuer.reserve(machine.monotonic, 0).err(), Some(NoPlan::Granted));
    assert!(!issuer.is_due());
    // Nor has an issuer with marks a grant.
    assert!(!IssuerProcess::start(None, &mut machine).issuer.raise(&grant));
}

#[test]
fn marks_that_are_stored_in_advance_move_twice_a_second() {
    let mut machine = MachineClocks::new();
    let mut process = IssuerProcess::start(None, &mut machine);
    let (mut marks, mut waits, begun) = (0, 0, machine.monotonic);
    while machine.monotonic < begun + 30 * SECOND {
        machine.run(MS);
        match process.issuer.next_id(|| machine.monotonic) {
            Ok(_) if process.issuer.is_due() => (marks, ()) = (marks + 1, process.reserve(0, &mut machine)),
            Ok(_) => {}
            Err(Obstacle::NotReserved(needed)) => (waits, ()) = (waits + 1, process.reserve(needed, &mut machine)),
            Err(obstacle) => panic!("{obstacle:?}"),
        }
    }
    assert_eq!(waits, 1, "only the first ID waits for a mark");
    assert!((50..=62).contains(&marks), "{marks} marks in 30 s");
}

#[test]
fn times_of_the_registry_are_read() {
    let read =
        ["1.5", "-0.5", "0", "1700000000.123456", "Infinity", "-Infinity", "x", "1.x", "99999999999999999"].map(micros);
    let whole = Some(1_700_000_000_123_456);
    let ends = [Some(i64::MAX), Some(-i64::MAX)];
    assert_eq!(read, [Some(1_500_000), Some(-500_000), Some(0), whole, ends[0], ends[1], None, None, None]);
}

#[test]
fn a_mark_far_ahead_of_the_clock_is_refused() {
    let (format, mut machine) = (twitter(), MachineClocks::new());
    let at = |wall: Nanos| Mark::stored(point(format, wall).id() as u64).unwrap();
    assert!(Issuer::start(&format, node(0), at(machine.wall + MAX_LEAD), machine.read()).is_ok());
    let refused = Issuer::start(&format, node(0), at(machine.wall + MAX_LEAD + MS), machine.read()).err();
    assert_eq!(refused, Some(StartError::Ahead(Duration::from_nanos(MAX_LEAD + MS))));
    assert_eq!(
        refused.unwrap().to_string(),
        "the first ID would be 86400 s ahead of the clock: check the clock and the mark"
    );
    let refused = Issuer::start(&format, node(1_024), Mark::NOTHING_ISSUED, machine.read()).err().unwrap();
    assert_eq!(refused.to_string(), "1024 does not fit into the worker field, which can hold 0 to 1023");
}

#[test]
fn no_id_repeats_whatever_the_clock_does() {
    let mut machine = MachineClocks::new();
    let (_, issuer) = granted(&mut machine, 24 * HOUR);
    let mut last = 0;
    for step in [0, SECOND as i64, -(SECOND as i64), -(HOUR as i64), HOUR as i64, 3 * HOUR as i64, -5_000_000] {
        machine.step(step);
        for _ in 0..50 {
            machine.run(40 * MS);
            issuer.discipline(|| machine.read(), &RULES);
            let id = issuer.next_id(|| machine.monotonic).unwrap();
            assert!(id > last, "after a step of {step} ns");
            last = id;
        }
    }
}

#[test]
fn the_ids_follow_a_slewed_clock_only_if_the_issuer_is_disciplined() {
    let behind = |disciplined: bool| {
        let mut machine = MachineClocks::new();
        let (_, issuer) = granted(&mut machine, 24 * HOUR);
        for _ in 0..3_600 {
            machine.run(SECOND);
            // The wall clock runs faster than the monotonic clock.
            machine.step(100_000);
            if disciplined {
                issuer.discipline(|| machine.read(), &RULES);
            }
        }
        let id = issuer.next_id(|| machine.monotonic).unwrap();
        (point(twitter(), machine.wall).id() >> 22) - (id >> 22)
    };
    assert_eq!(behind(true), 0);
    assert_eq!(behind(false), 360);
}

#[test]
fn a_stopped_issuer_issues_nothing() {
    let mut machine = MachineClocks::new();
    let (grant, issuer) = granted(&mut machine, SECOND);
    assert!(issuer.next_id(|| machine.monotonic).is_ok());
    issuer.stop();
    assert_eq!(issuer.next_id(|| machine.monotonic), Err(Obstacle::NotLoaded));
    let _ = issuer.raise(&grant);
    assert_eq!(issuer.next_ids(3, || machine.monotonic).err(), Some(Obstacle::NotLoaded));
}

#[test]
fn grants_of_every_layout_hold() {
    let nodes = (any::<u32>(), any::<u32>());
    let cases = (common::formats(), nodes, any::<u64>(), 0..5u64, 0..100_000u64, 1..64u64);
    let issued = Cell::new(0);
    forall(300, cases, |((shape, format), (datacenter, worker), at, ticks_long, length, count)| {
        let mut machine = MachineClocks::new();
        // A time within the layout and within the range of the clock.
        let ticks = common::largest(shape.timestamp).min((1 << 62) / common::nanos(format.layout.tick()));
        let tick = common::nanos(format.layout.tick());
        machine.wall = format.epoch.nanos().saturating_add((at % (ticks + 1)).saturating_mul(tick));
        let start = point(format, machine.wall);
        let length = (ticks_long << format.layout.timestamp_shift()).saturating_add(length);
        let bound = Point::new(start.id().saturating_add_unsigned(length).min(format.layout.last_id())).unwrap();
        let fits = |number: u32, part| (u64::from(number) & format.layout.max(part)) as u32;
        let node = Node { datacenter: fits(datacenter, Part::Datacenter), worker: fits(worker, Part::Worker) };
        let grant = Grant { node, start, bound, used: Mark::NOTHING_ISSUED };
        let Ok(issuer) = Issuer::of_grant(&member(format), &grant, machine.read()) else { return Ok(()) };
        let mut last = -1;
        for _ in 0..100 {
            match issuer.next_ids(count, || machine.monotonic) {
                Ok(ids) => {
                    for id in ids {
                        prop_assert!(
                            id > last && id >= start.id() && id <= bound.id(),
                            "{id} of {start:?} to {bound:?}"
                        );
                        last = id;
                        issued.set(issued.get() + 1);
                    }
                }
                Err(Obstacle::Throttled(pause)) => machine.run(pause.as_nanos() as Nanos),
                Err(_) => break,
            }
        }
        Ok(())
    });
    assert!(issued.get() > 10_000, "only {} IDs were compared", issued.get());
}

#[test]
fn threads_draw_while_others_raise_the_limit_and_follow_the_clock() {
    let (begun, mut machine) = (Instant::now(), MachineClocks::new());
    let reading = machine.read();
    let bound = |ms: Nanos| point(twitter(), reading.wall + ms * MS);
    let (first, issuer) = granted(&mut machine, 0);
    let elapsed = || begun.elapsed().as_nanos() as Nanos;
    let read = || Reading {
        monotonic: reading.monotonic + elapsed(),
        boot: reading.boot + elapsed(),
        wall: reading.wall + elapsed(),
        apart: 0,
    };
    // The limit rises by a millisecond at a time, so the threads meet it again and again.
    let draw = || {
        let mut ids = Vec::new();
        loop {
            match issuer.next_ids(5, || read().monotonic) {
                Ok(more) => ids.extend(more),
                Err(Obstacle::NotLoaded) => return ids,
                Err(Obstacle::NotReserved(_)) => thread::yield_now(),
                Err(Obstacle::Throttled(pause)) => thread::sleep(pause),
                Err(obstacle) => panic!("{obstacle:?}"),
            }
        }
    };
    let all = thread::scope(|scope| {
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(draw)).collect();
        scope.spawn(|| {
            for ms in 1..300 {
                assert!(issuer.raise(&Grant { bound: bound(ms), ..first }));
                issuer.discipline(read, &RULES);
                thread::sleep(Duration::from_micros(300));
            }
            issuer.stop();
        });
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    all.iter().for_each(|ids| assert_ascends(ids));
    let count: usize = all.iter().map(Vec::len).sum();
    let ids: HashSet<_> = all.into_iter().flatten().collect();
    assert_eq!(ids.len(), count);
    assert!(count > 100, "only {count} IDs");
    assert!(ids.iter().all(|id| *id <= bound(299).id()), "an ID above the last bound");
}
