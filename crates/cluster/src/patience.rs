//! How long the harness and the tests wait for something.

use std::time::{Duration, Instant};

/// The longest wait for what happens within a few heartbeats or windows.
pub const SOON: Duration = Duration::from_secs(30);

/// The longest wait for what takes some steps of a server, for example to start, to stop, or to follow another server.
pub const PATIENCE: Duration = Duration::from_secs(60);

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
