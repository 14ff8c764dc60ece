//! Tests a generator that is held: after the clock was set back, the settings allow no new reservation until the clock has reached its
//! earlier value again. `clock.rs` tests the clock itself.

mod common;

use common::machine::{ClockedServer, HOLD, HOUR, MS, MachineClocks, RULES, SECOND};
use flake::{ClockEvent, Nanos};

const DAY: Nanos = 24 * HOUR;

fn back(by: Nanos) -> i64 {
    -(by as i64)
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
fn a_generator_held_again_waits_for_the_later_of_the_two_times() {
    let mut server = ClockedServer::new(HOLD);
    let begun = server.machine.wall;
    server.machine.step(back(10 * SECOND));
    assert_eq!(server.compare().behind, Some(10 * SECOND));
    server.machine.step(back(20 * SECOND));
    assert_eq!(server.compare().behind, Some(30 * SECOND));
    // The clock goes forward, but not far enough, and then back a little.
    server.machine.step(25 * SECOND as i64);
    assert_eq!(server.compare().behind, Some(5 * SECOND));
    server.machine.step(back(SECOND));
    assert_eq!(server.compare().behind, Some(6 * SECOND));
    server.machine.suspend(6 * SECOND);
    assert_eq!((server.compare().behind, server.machine.wall), (None, begun));
}

#[test]
fn a_jump_does_not_release_a_held_generator() {
    let mut server = ClockedServer::new(HOLD);
    server.machine.step(back(10 * SECOND));
    server.compare();
    server.machine.step(DAY as i64);
    let disciplined = server.compare();
    assert_eq!((disciplined.event, disciplined.behind), (Some(ClockEvent::Jump(DAY)), Some(10 * SECOND)));
    server.machine.run(4 * SECOND);
    assert_eq!(server.compare().behind, Some(6 * SECOND), "the trusted clock goes on");
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
