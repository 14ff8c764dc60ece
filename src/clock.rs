//! The only clock read on the way to an ID.

use flake::Nanos;

use crate::faults::{self, Fault};

/// Wall-clock time in nanoseconds since the Unix epoch, 0 before it. One `clock_gettime`, answered by the vDSO without a
/// system call.
#[allow(unsafe_code)]
#[inline]
pub fn now() -> Nanos {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is valid for the call. It cannot fail: every Linux has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &mut time) };
    if faults::on(Fault::MicrosAsMillis) {
        time.tv_sec *= 1_000;
    }
    match u64::try_from(time.tv_sec) {
        Ok(seconds) => seconds.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64),
        Err(_) => 0,
    }
}
