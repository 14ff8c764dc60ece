//! Faults in values that PostgreSQL and the machine return.

use std::time::Duration;

use super::{Fault, on};

/// Returns an additional first address of a host if [`Fault::DeadAddress`] is on. Takes 20 seconds if
/// [`Fault::SlowLookup`] is on.
pub fn dead_address() -> Option<String> {
    if on(Fault::SlowLookup) {
        std::thread::sleep(Duration::from_secs(20));
    }
    on(Fault::DeadAddress).then(|| "127.0.0.2".into())
}

/// Copies a text argument if [`Fault::ArgumentCopied`] is on.
#[inline(always)]
pub fn argument_copied(text: &[u8]) -> &[u8] {
    if on(Fault::ArgumentCopied) {
        std::hint::black_box(text.to_vec());
    }
    text
}
