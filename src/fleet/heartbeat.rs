//! When the registrar sends the next heartbeat.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use crate::config::guc;

/// The number of heartbeats per lease.
const HEARTBEATS: u32 = 720;

/// The minimum time between two heartbeats, and before the second attempt after a failure.
pub const SHORTEST: Duration = Duration::from_secs(1);

/// Returns the time between two heartbeats.
pub fn period() -> Duration {
    (guc::lease() / HEARTBEATS).max(SHORTEST)
}

/// Returns the time until the next heartbeat after one that succeeded. It is random, so that servers that were started
/// together do not send their heartbeats at the same time.
pub fn after_success() -> Duration {
    period().mul_f64(random_between(0.9, 1.0))
}

/// Returns the time until the next attempt after this many consecutive failures. Each failure doubles this time, up to
/// the usual time between two heartbeats.
pub fn after_failures(failures: u64) -> Duration {
    let doubled = SHORTEST.saturating_mul(1 << failures.saturating_sub(1).min(10));
    doubled.min(period()).mul_f64(random_between(0.5, 1.0))
}

/// Returns a random number between `low` and `high`. This keeps servers whose heartbeats fail at the same time from
/// retrying at the same time.
fn random_between(low: f64, high: f64) -> f64 {
    let random = RandomState::new().hash_one(Instant::now());
    low + (high - low) * (random as f64 / u64::MAX as f64)
}
