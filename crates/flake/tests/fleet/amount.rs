//! How many random worlds a test explores.

use std::time::{SystemTime, UNIX_EPOCH};

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

/// Returns the seed of the first world and the number of worlds, if `tests` tests together explore `everyday` worlds. The environment
/// variable `FLEET_WORLDS` replaces the latter. With `SEED`, it is one world with this seed.
pub fn seed_and_worlds(everyday: usize, tests: usize) -> (u64, usize) {
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.as_nanos() as u64);
    match variable("SEED") {
        Some(seed) => (seed, 1),
        None => (clock(), variable("FLEET_WORLDS").map_or(everyday, |worlds| worlds as usize).div_ceil(tests)),
    }
}
