//! Determines when the server logs a clock event.

use std::sync::atomic::Ordering;

use flake::{ClockEvent, Disciplined, MAX_LEAD};

use crate::config::guc;
use crate::message::clock::{self, Occasion};
use crate::pg::timestamp;
use crate::server::{log_limit, shmem};

/// Logs one clock event.
pub fn clock(disciplined: &Disciplined) {
    let Some(event) = disciplined.event else { return };
    let (state, limiters) = (shmem::state(), shmem::limiters());
    let far = disciplined.lead > MAX_LEAD;
    let (limiter, by) = match event {
        // Large backward steps have their own limiter, so that a smaller event does not suppress a larger one.
        ClockEvent::Regression(by) if far => (&limiters.far, by),
        ClockEvent::Regression(by) => (&limiters.regression, by),
        ClockEvent::Jump(by) => (&limiters.jump, by),
        ClockEvent::Step(by) => (&limiters.step, by),
        ClockEvent::Returned => (&limiters.returned, 0),
        ClockEvent::Restored(by) => (&limiters.restored, by),
    };
    let Some(withheld) = limiter.pass(log_limit::CLOCK_EVERY, by) else { return };
    let incidents = match event {
        ClockEvent::Regression(_) => state.clock_regressions(),
        _ => state.clock_jumps(),
    };
    let since = timestamp::of(shmem::counting_since().load(Ordering::Relaxed));
    let on_regression = guc::clock_rules().on_regression;
    clock::event(event, &Occasion { count: incidents.count, since, far, on_regression, withheld });
}
