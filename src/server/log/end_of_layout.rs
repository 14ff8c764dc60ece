//! Determines when the server warns that its layout ends soon.

use flake::Nanos;

use crate::config::identity::{Identity, YEAR_DAYS};
use crate::message::layout;
use crate::server::{log_limit, shmem};

/// How many years before the end of the layout the warnings start. They start so early because moving to a different
/// layout requires planning.
const NOTICE_YEARS: f64 = 2.0;

/// Logs a warning if the layout ends soon.
pub fn end_of_layout(identity: &Identity, now: Nanos) {
    let years = identity.years_left(now);
    if years < NOTICE_YEARS && shmem::limiters().end.pass(log_limit::END_EVERY, 0).is_some() {
        layout::ends_soon(&identity.format, years, years * YEAR_DAYS);
    }
}
