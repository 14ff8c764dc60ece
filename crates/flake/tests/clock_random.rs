//! Tests the generator clock under random scripts: time passes, the machine is suspended, its clocks are slewed, the wall clock is
//! set, the processor is lost between two reads, and settings change. The oracle knows by how much the wall clock was set, which
//! the generator must find out. The oracle keeps no offsets.

mod common;

use common::forall;
use common::machine::{ClockedServer, HOLD, HOUR, MS, RULES, SECOND};
use flake::{ClockEvent, ClockRules, Nanos, OnRegression};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

const DAY: Nanos = 24 * HOUR;

/// What happens to the wall clock before a comparison.
#[derive(Clone, Copy, Debug)]
enum Set {
    By(i64),
    /// Back to the time that it would show without the jump, or off that time by this much.
    Right(i64),
}

/// A change by a superuser or a reload after a comparison.
#[derive(Clone, Copy, Debug)]
enum Change {
    Accept,
    Rule(OnRegression),
}

#[derive(Clone, Copy, Debug)]
struct Round {
    pass: Nanos,
    ppm: i64,
    suspended: Nanos,
    set: Set,
    lost: [Nanos; 3],
    /// How far ahead of generator time an ID is issued before the comparison.
    issued: Option<Nanos>,
    change: Option<Change>,
}

/// A busy machine gets no small steps, because its reads cannot tell them from the time between the reads.
fn rounds(busy: bool) -> impl Strategy<Value = Vec<Round>> {
    let around = |size: Nanos| -(size as i64)..=size as i64;
    let minutes =
        (5 * SECOND..600 * SECOND, any::<bool>()).prop_map(|(size, back)| size as i64 * if back { -1 } else { 1 });
    // Much larger than the largest jump: no lead in a script comes near it.
    let days = (2 * DAY..40 * 365 * DAY).prop_map(|size| size as i64);
    let small = if busy { around(0) } else { around(300 * MS) };
    let set = prop_oneof![
        4 => Just(Set::By(0)),
        3 => small.clone().prop_map(Set::By),
        2 => minutes.prop_map(Set::By),
        1 => days.prop_map(Set::By),
        2 => small.prop_map(Set::Right),
    ];
    let lost = prop_oneof![Just(0), if busy { 0..=81 * MS } else { 0..=0 }];
    let pass = prop_oneof![Just(0), 0..10 * MS, 0..20 * SECOND, 0..2 * HOUR];
    let suspended = prop_oneof![5 => Just(0), 1 => 0..10 * DAY];
    let rule = prop_oneof![Just(OnRegression::Continue), Just(OnRegression::Hold)].prop_map(Change::Rule);
    let change = prop_oneof![8 => Just(None), 1 => Just(Some(Change::Accept)), 1 => rule.prop_map(Some)];
    let (lost, issued) = ([lost.clone(), lost.clone(), lost], prop::option::of(0..150 * MS));
    let round = (pass, -500..=500i64, suspended, set, lost, issued, change).prop_map(|round| {
        let (pass, ppm, suspended, set, lost, issued, change) = round;
        Round { pass, ppm, suspended, set, lost, issued, change }
    });
    prop::collection::vec(round, 1..25)
}

/// The changes that were made to the wall clock.
struct Oracle {
    /// How far it is off the trusted clock.
    off: i128,
    /// The time that the trusted clock must show before more is reserved.
    hold: Option<i128>,
    /// The longest loss of the processor so far. Both ends of a comparison are known only to this precision.
    apart: i128,
}

impl Oracle {
    fn blur(&self) -> i128 {
        2 * self.apart
    }

    fn event(&self, by: i128, rules: &ClockRules) -> Option<ClockEvent> {
        let (slack, size) = (i128::from(rules.slack), self.off.unsigned_abs() as Nanos);
        match self.off {
            _ if by.abs() <= slack => None,
            off if off > rules.max_jump.into() => Some(ClockEvent::Jump(size)),
            off if off > slack => Some(ClockEvent::Step(size)),
            off if off < -slack => Some(ClockEvent::Regression(size)),
            _ => Some(ClockEvent::Returned),
        }
    }
}

/// Is it the same event, of about the same size?
fn similar(found: Option<ClockEvent>, expected: Option<ClockEvent>, blur: i128) -> bool {
    use ClockEvent::{Jump, Regression, Returned, Step};
    let close = |a: Nanos, b: Nanos| i128::from(a.abs_diff(b)) <= blur;
    match (found, expected) {
        (None, None) | (Some(Returned), Some(Returned)) => true,
        (Some(Regression(a)), Some(Regression(b))) | (Some(Jump(a)), Some(Jump(b))) => close(a, b),
        (Some(Step(a)), Some(Step(b))) => close(a, b),
        _ => false,
    }
}

fn check(rules: ClockRules, rounds: &[Round]) -> Result<(), TestCaseError> {
    let mut server = ClockedServer::new(rules);
    let mut oracle = Oracle { off: 0, hold: None, apart: 0 };
    for (number, round) in rounds.iter().enumerate() {
        let rules = server.rules;
        server.machine.slew(round.pass, round.ppm);
        server.machine.suspend(round.suspended);
        let by = match round.set {
            Set::By(by) => by,
            Set::Right(by) => by - oracle.off as i64,
        };
        server.machine.step(by);
        if let Some(ahead) = round.issued {
            server.issued = server.issued.max(server.time() + ahead);
        }
        oracle.off += i128::from(by);
        oracle.apart = oracle.apart.max(round.lost.iter().sum::<Nanos>().into());
        let blur = oracle.blur();
        let expected = oracle.event(by.into(), &rules);
        let trusts = oracle.off <= i128::from(rules.max_jump);
        // The wall clock at the moment of the first read.
        let shown = i128::from(server.machine.wall);
        let before = i128::from(server.time());
        let floor = before.min(i128::from(server.issued) - i128::from(rules.slack / 2));
        let passed = i128::from(server.machine.monotonic - server.clock.compared_at);
        if let (Some(ClockEvent::Regression(size)), OnRegression::Hold) = (expected, rules.on_regression) {
            oracle.hold = oracle.hold.max(Some(shown + i128::from(size)));
        }
        if trusts {
            oracle.off = 0;
        }
        let trusted = shown - oracle.off;
        if rules.on_regression == OnRegression::Continue {
            oracle.hold = None;
        }

        let at = server.machine.monotonic;
        let found = server.compare_busy(round.lost);
        let after = i128::from(server.clock.time(at));
        let about = format!("round {number}: {found:?}, generator time {before} -> {after}, trusted {trusted}");

        prop_assert!(similar(found.event, expected, blur), "{expected:?} expected, {about}");
        let behind = i128::from(found.behind.unwrap_or(0));
        let expected_behind = (oracle.hold.unwrap_or(0) - trusted).max(0);
        prop_assert!((behind - expected_behind).abs() <= blur, "behind by {expected_behind} expected, {about}");
        if behind == 0 {
            oracle.hold = None;
        }
        // Generator time is at the trusted clock, unless it leads, and is raised no further.
        prop_assert!(after >= trusted - blur, "behind the trusted clock, {about}");
        prop_assert!(after <= before.max(trusted + blur), "raised without need, {about}");
        prop_assert!((i128::from(found.lead) - (after - trusted)).abs() <= blur, "the lead is wrong, {about}");
        prop_assert!(after >= floor, "taken back below the last ID, {about}");
        match rules.on_regression {
            OnRegression::Continue => prop_assert!(before - after <= passed / 10, "taken back too fast, {about}"),
            OnRegression::Hold if behind > 0 => prop_assert!(after >= before, "taken back while held, {about}"),
            OnRegression::Hold => {}
        }

        match round.change {
            None => {}
            Some(Change::Rule(rule)) => server.rules.on_regression = rule,
            Some(Change::Accept) => {
                let led = i128::from(server.time());
                server.clock = server.clock.accept(server.machine.read());
                prop_assert_eq!(i128::from(server.time()), led.max(server.machine.wall.into()));
                (oracle.off, oracle.hold) = (0, None);
            }
        }
    }
    Ok(())
}

#[test]
fn a_machine_that_is_never_busy_is_followed_to_the_nanosecond() {
    for rules in [RULES, HOLD] {
        forall(1_500, rounds(false), |rounds| check(rules, &rounds));
    }
}

#[test]
fn a_busy_machine_is_followed_as_well_as_its_reads_allow() {
    for rules in [RULES, HOLD, ClockRules { slack: 2 * MS, ..RULES }, ClockRules { slack: 2 * MS, ..HOLD }] {
        forall(500, rounds(true), |rounds| check(rules, &rounds));
    }
}
