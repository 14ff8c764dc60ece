//! Threads that share an issuer, on real processors.
#![cfg(not(loom))]

mod common;

use std::collections::HashSet;
use std::thread;
use std::time::{Duration, Instant};

use common::granted::{assert_ascends, granted, point, twitter};
use common::machine::{MS, MachineClocks, RULES};
use flake::fleet::Grant;
use flake::{Nanos, Obstacle, Reading};

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
