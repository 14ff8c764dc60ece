//! The cost of a random start of the sequence: words of the tick in which it starts, and a wait if ticks are long.

mod common;

use common::NO_CEILING;
use flake::{Epoch, IdFormat, Layout, Limits, Nanos, Obstacle, Pace, Request, Tick, step};

const MS: Nanos = 1_000_000;

/// The outcome of evenly spread requests.
struct Served {
    issued: u64,
    waits: u64,
    longest: Nanos,
}

/// One session that requests `share` times the capacity of a tick in each tick, for `ticks` ticks, and catches up after a wait.
fn serve(layout: Layout, random_start: bool, share: f64, ticks: u64) -> Served {
    let format = IdFormat { layout, epoch: Epoch::TWITTER };
    let (limits, pace) = (Limits::of(&format), Pace { max_ahead: 100 * MS, random_start, overdue: false, waited: 0 });
    let start = 1_700_000_000_000 * MS;
    let end = start + ticks * layout.tick().nanos();
    let between = layout.tick().nanos() as f64 / (layout.sequence_capacity() as f64 * share);
    let (mut now, mut last) = (start, 0);
    let mut served = Served { issued: 0, waits: 0, longest: 0 };
    loop {
        let due = start + (served.issued as f64 * between) as Nanos;
        now = now.max(due);
        if now >= end {
            return served;
        }
        match step(last, now, NO_CEILING, &limits, pace, Request::UpTo(1)) {
            Ok(run) => (last, served.issued) = (run.last(), served.issued + 1),
            Err(Obstacle::Throttled(wait)) => {
                let wait = wait.as_nanos() as Nanos;
                (now, served.waits, served.longest) = (now + wait, served.waits + 1, served.longest.max(wait));
            }
            other => panic!("{other:?}"),
        }
    }
}

fn seconds() -> Layout {
    Layout::of(31, None, 10, 12, Tick::S1).unwrap()
}

#[test]
fn in_ticks_shorter_than_the_run_ahead_it_makes_nobody_wait() {
    for share in [0.01, 0.5, 0.9, 0.999] {
        assert_eq!(serve(Layout::TWITTER, true, share, 300).waits, 0, "{share}");
    }
}

#[test]
fn at_the_limit_it_takes_nothing_away() {
    for layout in [Layout::TWITTER, seconds()] {
        let ticks = if layout == Layout::TWITTER { 1_000 } else { 300 };
        let [zero, random] = [false, true].map(|start| serve(layout, start, 2.0, ticks).issued as f64);
        let capacity = (layout.sequence_capacity() * ticks) as f64;
        assert!(zero >= 0.98 * capacity, "{layout}: {zero} of {capacity}");
        assert!(random >= 0.98 * zero, "{layout}: {random}, not {zero}");
    }
}

#[test]
fn in_ticks_longer_than_the_run_ahead_it_makes_a_busy_session_wait_for_the_next() {
    let [zero, random] = [false, true].map(|start| serve(seconds(), start, 0.5, 300));
    assert_eq!((zero.waits, zero.longest), (0, 0));
    // A start in the second half of a tick leaves fewer words than half of the tick's capacity, which the session requests.
    assert!((60..=300).contains(&random.waits), "{} waits", random.waits);
    assert!(random.longest > 300 * MS && random.longest <= 1_000 * MS, "{} ns", random.longest);
    assert!(random.issued >= zero.issued * 98 / 100, "{} IDs, not {}", random.issued, zero.issued);
}

/// Words of the tick that are left to a burst after an idle moment: all of them, or half on average.
#[test]
fn a_burst_after_an_idle_tick_finds_half_of_a_tick_on_average() {
    let format = IdFormat { layout: Layout::TWITTER, epoch: Epoch::TWITTER };
    let left = |random_start| {
        let (limits, pace) =
            (Limits::of(&format), Pace { max_ahead: 100 * MS, random_start, overdue: false, waited: 0 });
        let bursts = 10_000u64;
        let left = (0..bursts).map(|burst| {
            let now = (1_700_000_000_000 + 10 * burst) * MS + burst % 1_000 * 1_000;
            match step(0, now, NO_CEILING, &limits, pace, Request::UpTo(1)) {
                Ok(run) => 4_096 - run.first % 4_096,
                other => panic!("{other:?}"),
            }
        });
        left.sum::<u64>() as f64 / bursts as f64
    };
    assert_eq!(left(false), 4_096.0);
    assert!((1_990.0..=2_110.0).contains(&left(true)), "{}", left(true));
}
