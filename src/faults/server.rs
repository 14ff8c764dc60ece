//! Faults in the clocks and in waiting.

use std::time::{Duration, Instant};

use flake::{Nanos, Reading};

use super::{Fault, on, since_1970};

/// Makes the clock run a thousand times as fast if [`Fault::MicrosAsMillis`] is on.
#[inline(always)]
pub fn micros_as_millis(time: Nanos) -> Nanos {
    if on(Fault::MicrosAsMillis) { time * 1_000 } else { time }
}

/// Sleeps for up to 150 ms before the wall clock is read if [`Fault::ReadsApart`] or [`Fault::ReadsTrusted`] is on. If
/// [`Fault::ReadsTrusted`] is on, the reads are considered simultaneous.
pub fn read_apart(reading: Reading) -> Reading {
    if !on(Fault::ReadsApart) && !on(Fault::ReadsTrusted) {
        return reading;
    }
    let begun = Instant::now();
    std::thread::sleep(Duration::from_millis(u64::from(since_1970().subsec_micros()) % 150));
    let wall = since_1970().as_nanos() as Nanos;
    let apart = reading.apart + begun.elapsed().as_nanos() as Nanos;
    Reading { wall, apart: if on(Fault::ReadsTrusted) { 0 } else { apart }, ..reading }
}

/// Sleeps ten times as long, without responding to interrupts, if [`Fault::DeafWait`] is on. Returns true if the fault
/// is on.
pub fn deaf_wait(time: Duration) -> bool {
    let deaf = on(Fault::DeafWait);
    if deaf {
        std::thread::sleep(time * 10);
    }
    deaf
}

/// Returns the wait event to show, or 0 if [`Fault::HiddenWait`] is on.
pub fn shown_event(event: u32) -> u32 {
    if on(Fault::HiddenWait) { 0 } else { event }
}
