//! How long the harness and the tests wait for something.

use std::time::{Duration, Instant};

/// The longest wait for a server to start or stop.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Checks a condition repeatedly until it is true. Returns false if it does not become true in time.
pub fn within(time: Duration, mut so: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + time;
    loop {
        if so() {
            return true;
        }
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
