//! The clocks of the machine. They are read through the vDSO, without a system call.
#![allow(unsafe_code)]

use flake::{Nanos, Reading};

use crate::faults;

/// The maximum time between the first and the last clock read, in nanoseconds. If it is exceeded, the clocks are read
/// again.
const APART: Nanos = 1_000_000;

/// The maximum number of times that the clocks are read. If no reads are close enough together, as can happen on a busy
/// machine, the closest ones are used.
const TRIES: usize = 20;

/// Reads the monotonic clock. This is the only clock that is read for each ID.
#[inline]
pub fn monotonic() -> Nanos {
    faults::micros_as_millis(read(libc::CLOCK_MONOTONIC))
}

/// Reads the wall clock, in nanoseconds since the Unix epoch. Returns 0 if the wall clock is before the Unix epoch.
pub fn wall() -> Nanos {
    read(libc::CLOCK_REALTIME)
}

/// Reads all clocks as closely together as possible.
pub fn reading() -> Reading {
    let mut best = read_all();
    for _ in 1..TRIES {
        if best.apart <= APART {
            break;
        }
        let next = read_all();
        if next.apart < best.apart {
            best = next;
        }
    }
    best
}

fn read_all() -> Reading {
    let monotonic = monotonic();
    let boot = read(libc::CLOCK_BOOTTIME);
    let wall = wall();
    let apart = self::monotonic().saturating_sub(monotonic);
    faults::read_apart(Reading { monotonic, boot, wall, apart })
}

#[inline]
fn read(clock: libc::clockid_t) -> Nanos {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is valid for the call. The call cannot fail, because these clocks exist in Linux 2.6.39 and
    // later.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    match u64::try_from(time.tv_sec) {
        Ok(seconds) => seconds.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64),
        Err(_) => 0,
    }
}
