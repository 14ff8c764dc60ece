//! How long the harness and the tests wait for something.

use std::time::{Duration, Instant};

/// The longest wait for what happens within a few heartbeats or windows.
pub const SOON: Duration = Duration::from_secs(30);

/// The longest wait for what takes some steps of a server, for example to start, to stop, or to follow another server.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The shortest and the longest pause between two looks. Most of what the tests wait for happens at once. If it takes longer, a look
/// every few milliseconds would only keep the processors from the servers.
const PAUSES: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(50)];

/// Checks a condition repeatedly until it is true. Returns false if it does not become true in time.
pub fn within(time: Duration, mut so: impl FnMut() -> bool) -> bool {
    found_within(time, || so().then_some(())).is_some()
}

/// Looks for something repeatedly until it is found. Returns `None` if it is not found in time.
pub fn found_within<T>(time: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let begun = Instant::now();
    loop {
        let found = look();
        if found.is_some() || begun.elapsed() > time {
            return found;
        }
        std::thread::sleep((begun.elapsed() / 10).clamp(PAUSES[0], PAUSES[1]));
    }
}

/// Repeats a check until it succeeds. Returns its last error if it does not succeed in time.
pub fn succeeds_within(time: Duration, mut check: impl FnMut() -> Result<(), String>) -> Result<(), String> {
    let mut result = Ok(());
    within(time, || {
        result = check();
        result.is_ok()
    });
    result
}
