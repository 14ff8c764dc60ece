//! The function with which a superuser accepts the clock, after it was set to a correct time. Each call writes a message
//! to the server log.

use std::time::Duration;

use pgrx::prelude::*;

use crate::config::identity::Identity;
use crate::generator::{assigned, start};
use crate::message;
use crate::message::clock::ClockProblem;
use crate::pg::timestamp;
use crate::pg::wait_event::WaitEvent;
use crate::server::{clock, shmem, wait};

/// Accepts the server's clock as correct. From then on, IDs follow the clock. Returns the interval by which generator
/// time was moved.
#[pg_extern(volatile, parallel_unsafe)]
fn snowflake_accept_clock() -> Interval {
    let identity @ Identity { format, limits, .. } = assigned::take();
    start::load(identity);
    // The clock is read only once, so that the accepted time is the time that was checked.
    let reading = clock::reading();
    let shown = reading.wall;
    if limits.word_at(shown).is_none_or(|word| word > limits.last_word()) {
        ClockProblem::Outside { clock: timestamp::of(shown), format: *format }.raise();
    }
    let moved = loop {
        match shmem::state().accept_clock(|| reading) {
            Some(moved) => break moved / 1_000,
            None => wait::on_latch(WaitEvent::Mark, Duration::from_millis(1)),
        }
    };
    message::clock::accepted(timestamp::of(shown), moved);
    timestamp::interval(moved.into())
}
