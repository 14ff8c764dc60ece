//! The clocks of a process, with the standard library only.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use flake::{Nanos, Reading};

/// The clocks. The monotonic clock counts from the creation of this value.
#[derive(Clone, Copy)]
pub struct Clock(Instant);

impl Clock {
    /// Starts the monotonic clock.
    pub fn start() -> Clock {
        Clock(Instant::now())
    }

    /// Reads the monotonic clock.
    pub fn monotonic(&self) -> Nanos {
        nanos(self.0.elapsed().as_nanos())
    }

    /// Reads all clocks. The standard library has no boot clock. With the monotonic clock in its place, a suspended machine looks like
    /// one whose wall clock was set forward.
    pub fn read(&self) -> Reading {
        let monotonic = self.monotonic();
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let apart = self.monotonic() - monotonic;
        Reading { monotonic, boot: monotonic, wall: nanos(wall.as_nanos()), apart }
    }
}

/// The time of any clock until the year 2554.
fn nanos(nanos: u128) -> Nanos {
    Nanos::try_from(nanos).unwrap_or(Nanos::MAX)
}
