//! Faults in the background workers.

use flake::fleet::{Member, MemberIdentity, Point, Record};

use super::{Fault, on};

/// Forgets the nonce of an unanswered renewal if [`Fault::NonceReplaced`] is on.
pub fn forget_nonce(member: &mut Member, identity: MemberIdentity) {
    let pending = member.record().copied().filter(|record| on(Fault::NonceReplaced) && record.pending.is_some());
    if let Some(record) = pending {
        *member = Member::start(identity, Some(Record { pending: None, ..record }), Point::ZERO);
    }
}
