//! Tests a generator that is held: after the clock was set back, the settings allow no new reservation until the clock has reached its
//! earlier value again. `clock.rs` tests the clock itself.

mod common;

use common::machine::{ClockedServer, HOLD, HOUR, MS, MachineClocks, RULES, SECOND};
use flake::{ClockEvent, Nanos};

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
