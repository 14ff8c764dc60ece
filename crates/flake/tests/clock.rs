//! Tests the cases of the generator clock that the random cases of `clock_random.rs` do not meet: sizes at their limits, how fast a
//! lead shrinks, a generator that begins with a lead, and a monotonic clock that goes back. The last tests hold a generator:
//! after the clock was set back, the settings allow no new reservation until the clock has reached its earlier value again.

mod common;

use common::machine::{ClockedServer, HOLD, HOUR, MS, MachineClocks, RULES, SECOND};
use flake::{ClockEvent, ClockRules, GeneratorClock, Nanos};

const DAY: Nanos = 24 * HOUR;

fn back(by: Nanos) -> i64 {
    -(by as i64)
}

#[test]
fn a_clock_set_back_an_hour_is_one_event_and_the_lead_is_gone_after_ten_hours() {
    let mut server = ClockedServer::new(RULES);
    server.issue();
    server.machine.run(SECOND);
    let before = server.time();
    server.machine.step(back(HOUR));
    let disciplined = server.compare();
    assert_eq!((disciplined.event, disciplined.behind), (Some(ClockEvent::Regression(HOUR)), None));
    assert_eq!(before - server.time(), SECOND / 10, "one tenth of the second since the last comparison");
    assert_eq!(disciplined.lead, HOUR - SECOND / 10);
    // The rest of the hour takes ten times as long, less the second that is already counted.
    let lead = |server: &ClockedServer| server.ahead() as Nanos;
    assert_eq!(server.go_on(5 * HOUR, SECOND), []);
    assert_eq!(lead(&server), HOUR / 2 - SECOND / 10);
    assert_eq!(server.go_on(5 * HOUR - 2 * SECOND, SECOND), []);
    assert_eq!(lead(&server), SECOND / 10);
    assert_eq!(server.go_on(SECOND, SECOND), []);
    assert_eq!(lead(&server), 0);
    assert_eq!(server.go_on(HOUR, SECOND), []);
    assert_eq!(lead(&server), 0);
}

#[test]
fn a_forward_step_up_to_the_largest_jump_is_followed_at_once() {
    for by in [101 * MS, 5 * SECOND, HOUR] {
        let mut server = ClockedServer::new(RULES);
        server.machine.run(SECOND);
        server.machine.step(by as i64);
        let disciplined = server.compare();
        assert_eq!((disciplined.event, disciplined.behind, disciplined.lead), (Some(ClockEvent::Step(by)), None, 0));
        assert_eq!(server.ahead(), 0);
        assert_eq!(server.go_on(HOUR, SECOND), []);
    }
}

#[test]
fn a_larger_jump_is_one_event_and_not_followed_however_long_it_lasts() {
    for by in [HOUR + 1, 75 * 365 * DAY] {
        let mut server = ClockedServer::new(RULES);
        server.machine.run(SECOND);
        let before = server.time();
        server.machine.step(by as i64);
        let disciplined = server.compare();
        assert_eq!((disciplined.event, disciplined.behind, disciplined.lead), (Some(ClockEvent::Jump(by)), None, 0));
        assert_eq!(server.time(), before);
        assert_eq!(server.go_on(2 * HOUR, SECOND), []);
        assert_eq!(server.time(), before + 2 * HOUR, "at the speed of the monotonic clock");
        // After a suspension, generator time catches up by the boot clock.
        server.machine.suspend(8 * HOUR);
        assert_eq!(server.compare().event, None);
        assert_eq!(server.time(), before + 10 * HOUR);
    }
}

#[test]
fn a_clock_that_returns_from_a_regression_is_followed_however_large_it_was() {
    // The clock returns to generator time, so following it risks nothing.
    for rules in [RULES, HOLD] {
        let mut server = ClockedServer::new(rules);
        server.machine.step(back(10 * HOUR));
        assert_eq!(server.compare().event, Some(ClockEvent::Regression(10 * HOUR)));
        server.machine.run(SECOND);
        server.machine.step(10 * HOUR as i64);
        let disciplined = server.compare();
        assert_eq!((disciplined.event, disciplined.behind), (Some(ClockEvent::Step(10 * HOUR)), None), "{rules:?}");
        assert_eq!(server.go_on(200 * HOUR, 60 * SECOND), []);
        assert_eq!(server.ahead(), 0, "{rules:?}");
    }
}

#[test]
fn a_generator_that_begins_at_its_mark_sees_no_event_in_its_lead() {
    for rules in [RULES, HOLD] {
        let mark = MachineClocks::new().wall + 6 * HOUR;
        let mut server = ClockedServer::started(rules, mark);
        assert_eq!(server.time(), mark);
        let disciplined = server.compare();
        assert_eq!((disciplined.event, disciplined.behind, disciplined.lead), (None, None, 6 * HOUR));
        assert_eq!(server.go_on(30 * HOUR, SECOND), []);
        assert_eq!(server.ahead(), 3 * HOUR as i64);
        assert_eq!(server.go_on(40 * HOUR, SECOND), []);
        assert_eq!(server.ahead(), 0);
    }
}

#[test]
fn steps_within_the_slack_are_no_events() {
    let mut server = ClockedServer::new(RULES);
    for by in [100 * MS as i64, back(100 * MS), 1, -1, back(60 * MS), back(60 * MS), 60 * MS as i64] {
        server.machine.run(SECOND);
        server.machine.step(by);
        let disciplined = server.compare();
        assert_eq!((disciplined.event, disciplined.behind), (None, None), "{by}");
        assert!(server.ahead() >= 0);
    }
    // Two steps are two steps, however soon one follows the other, unless there was no comparison in between.
    server.machine.step(back(60 * MS));
    server.machine.step(back(60 * MS));
    assert_eq!(server.compare().event, Some(ClockEvent::Regression(120 * MS)));
    // A slack larger than the largest jump is still the slack.
    let mut server = ClockedServer::new(ClockRules { max_jump: 0, ..RULES });
    server.machine.step(100 * MS as i64);
    assert_eq!(server.compare().event, None);
    server.machine.step(101 * MS as i64);
    assert_eq!(server.compare().event, Some(ClockEvent::Jump(101 * MS)));
}

#[test]
fn reads_far_apart_are_no_event_wherever_the_processor_was_lost() {
    // As seen on a busy machine, with the smallest slack that can be set and with the default one.
    for slack in [2 * MS, 100 * MS] {
        let rules = ClockRules { slack, ..RULES };
        let places = [[81 * MS, 0, 0], [0, 81 * MS, 0], [0, 0, 81 * MS], [40 * MS, 40 * MS, MS]];
        for rules in [rules, ClockRules { slack, ..HOLD }] {
            for lost in places {
                let mut server = ClockedServer::new(rules);
                // Once, and twice in a row, each time followed by an undisturbed comparison.
                for lost in [[0; 3], lost, [0; 3], lost, lost, [0; 3]] {
                    server.machine.run(SECOND);
                    let disciplined = server.compare_busy(lost);
                    assert_eq!((disciplined.event, disciplined.behind), (None, None), "lost {lost:?} with {rules:?}");
                    assert!((0..=82 * MS as i64).contains(&server.ahead()), "{server:?}");
                }
                // The same when the generator starts.
                let mut server = ClockedServer::new(rules);
                server.clock = GeneratorClock::start(server.machine.read_busy(lost), 0);
                assert_eq!(server.compare().event, None, "lost {lost:?} at the start");
            }
        }
    }
}

/// The machine of a restored container: its monotonic and boot clocks start from other values.
fn restored(server: &mut ClockedServer, back: Nanos, away: Nanos) {
    server.machine.monotonic -= back;
    server.machine.boot -= back;
    server.machine.wall += away;
}

#[test]
fn a_monotonic_clock_that_goes_back_is_one_event_and_generator_time_goes_on_at_once() {
    let mut server = ClockedServer::new(RULES);
    server.go_on(HOUR, SECOND);
    server.issue();
    let issued = server.issued;
    restored(&mut server, 20 * HOUR, 60 * SECOND);
    assert!(server.time() < issued - 19 * HOUR, "nothing would be issued for hours");
    let disciplined = server.compare();
    assert_eq!(
        (disciplined.event, disciplined.behind, disciplined.lead),
        (Some(ClockEvent::Restored(20 * HOUR)), None, 0)
    );
    assert_eq!(server.ahead(), 0);
    assert!(server.time() >= issued);
    assert_eq!(server.go_on(HOUR, SECOND), []);
}

#[test]
fn after_a_restore_to_an_earlier_wall_clock_generator_time_begins_at_the_last_id() {
    for rules in [RULES, HOLD] {
        let mut server = ClockedServer::new(rules);
        server.go_on(HOUR, SECOND);
        server.issue();
        let issued = server.issued;
        restored(&mut server, HOUR, 0);
        server.machine.step(back(60 * SECOND));
        let disciplined = server.compare();
        assert_eq!((disciplined.event, disciplined.behind), (Some(ClockEvent::Restored(HOUR)), None));
        assert_eq!(server.time(), issued);
        assert_eq!(server.go_on(HOUR, SECOND), []);
        assert_eq!(server.ahead(), 0, "the lead is gone");
    }
}

#[test]
fn after_a_restore_on_a_machine_that_is_up_for_longer_generator_time_is_the_wall_clock() {
    let mut server = ClockedServer::new(RULES);
    server.go_on(HOUR, SECOND);
    server.issue();
    server.machine.run(60 * SECOND);
    // The wall clock does not move with the others, as if it had been set back by 30 days.
    server.machine.monotonic += 30 * DAY;
    server.machine.boot += 30 * DAY;
    assert!(server.ahead() as Nanos >= 30 * DAY, "IDs of the next month");
    let disciplined = server.compare();
    assert_eq!((disciplined.event, disciplined.lead), (Some(ClockEvent::Regression(30 * DAY)), 0));
    assert_eq!(server.ahead(), 0);
    assert!(server.time() > server.issued);
    assert_eq!(server.go_on(HOUR, SECOND), []);
}

#[test]
fn a_held_generator_reserves_nothing_until_the_clock_is_back_and_then_goes_on_at_it() {
    for last_issued_ahead in [0, 50 * MS] {
        let mut server = ClockedServer::new(HOLD);
        server.issued = server.time() + last_issued_ahead;
        server.machine.step(back(10 * SECOND));
        let disciplined = server.compare();
        assert_eq!(disciplined.event, Some(ClockEvent::Regression(10 * SECOND)));
        assert_eq!(disciplined.behind, Some(10 * SECOND));
        for second in 1..10 {
            server.machine.run(SECOND);
            let disciplined = server.compare();
            assert_eq!((disciplined.event, disciplined.behind), (None, Some((10 - second) * SECOND)));
            assert!(server.time() >= server.issued - last_issued_ahead, "what was issued is not the past yet");
        }
        server.machine.run(SECOND - 1);
        assert_eq!(server.compare().behind, Some(1));
        server.machine.run(1);
        assert_eq!(server.compare().behind, None);
        assert_eq!(server.time(), server.machine.wall.max(server.issued));
        assert_eq!(server.go_on(10 * SECOND, 100 * MS), []);
        assert_eq!(server.ahead(), 0);
    }
}

#[test]
fn a_lead_that_was_there_before_a_hold_is_given_up_with_it() {
    let mut server = ClockedServer::started(HOLD, MachineClocks::new().wall + HOUR);
    server.issued = server.machine.wall;
    server.machine.step(back(SECOND));
    assert_eq!(server.compare().behind, Some(SECOND));
    server.machine.run(SECOND);
    assert_eq!(server.compare().behind, None);
    assert_eq!(server.ahead(), 0, "nothing was issued above it");
}

#[test]
fn a_held_generator_goes_on_when_the_setting_is_changed() {
    let mut server = ClockedServer::new(HOLD);
    server.issue();
    server.machine.step(back(HOUR));
    assert_eq!(server.compare().behind, Some(HOUR));
    server.machine.run(SECOND);
    server.rules = RULES;
    let disciplined = server.compare();
    assert_eq!((disciplined.event, disciplined.behind), (None, None));
    assert!(server.time() >= server.issued);
    // The hold ended for good: when the setting is changed back, there is nothing to wait for.
    server.rules = HOLD;
    server.machine.run(SECOND);
    assert_eq!(server.compare().behind, None);
    assert!(server.ahead() > HOUR as i64 / 2, "and the lead is not given up at once");
}
