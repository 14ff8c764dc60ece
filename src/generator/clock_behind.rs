//! Determines whether a session continues, waits or raises an error while the wall clock is behind the time that it
//! showed earlier, as specified by `snowflake_pg.on_clock_regression`.

use std::time::Duration;

use flake::Nanos;
use pgrx::debug1;

use crate::config::guc::{self, ClockRegression};
use crate::message::clock::ClockProblem;
use crate::pg::wait_event::WaitEvent;
use crate::server::wait;

/// The maximum time that a session waits after the clock was set back, if the setting is `wait`.
const LONGEST_WAIT: Nanos = 10_000_000_000;

/// Waits while the wall clock is behind the time that it showed earlier, or raises an error, depending on
/// `snowflake_pg.on_clock_regression`.
pub fn wait_or_raise(behind: Nanos) {
    if refuses(behind) {
        ClockProblem::Behind { behind: Duration::from_nanos(behind) }.raise();
    }
    debug1!("snowflake_pg: waiting for the clock, which is behind by {} ms", behind / 1_000_000);
    wait::on_latch(WaitEvent::Clock, Duration::from_nanos(behind));
}

/// Returns true if requests are refused while the wall clock is behind by this much. Otherwise, the session may wait.
pub fn refuses(behind: Nanos) -> bool {
    match guc::on_clock_regression() {
        ClockRegression::Continue => false,
        ClockRegression::Wait => behind > LONGEST_WAIT,
        ClockRegression::Error => behind > 0,
    }
}
