//! Faults in the settings.

use flake::Nanos;

use super::{Fault, on};

/// Returns a limit that no clock jump exceeds if [`Fault::JumpFollowed`] is on.
pub fn any_jump(max: Nanos) -> Nanos {
    if on(Fault::JumpFollowed) { Nanos::MAX } else { max }
}

/// Returns a limit that no lead exceeds if [`Fault::UnboundedLead`] is on.
#[inline(always)]
pub fn any_lead(max: Nanos) -> Nanos {
    if on(Fault::UnboundedLead) { Nanos::MAX / 2 } else { max }
}
