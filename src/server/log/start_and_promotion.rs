//! Determines what the server logs about its identity and its mark when it starts or is promoted.

use flake::{Mark, Nanos};

use crate::config::guc;
use crate::config::identity::{self, Identity};
use crate::message::fleet;
use crate::message::start::{self, PrimaryStart};
use crate::pg::startup::Startup;
use crate::pg::{recovery, server, timestamp};

/// Logs the identity of a server that has started or has been promoted. Also logs a warning if the mark may not cover
/// all existing IDs.
pub fn server(identity: &Identity, mark: Mark, startup: Startup, now: Nanos) {
    let name = match identity.worker_set {
        true => identity.name(identity.node),
        false => start::UNASSIGNED.into(),
    };
    let issuer = identity.issuer(mark);
    // `alone` is true if this server issued the last ID, was restarted as a standby, and was promoted, as happens with
    // Patroni after a crash.
    let copied = startup == Startup::Standby { copied: true };
    let alone = issuer == Some(identity.node) && !copied && !recovery::followed();
    let begun = match (startup, issuer) {
        // The worker ID that the registry assigns does not depend on which server issued the last ID.
        (Startup::Standby { .. }, _) if identity.registry_set => PrimaryStart::Promoted,
        (Startup::Standby { .. }, Some(issuer)) if issuer != identity.node => {
            PrimaryStart::PromotedAfter(identity.name(issuer))
        }
        (Startup::Standby { .. }, Some(_)) if alone => PrimaryStart::Continuing,
        (Startup::Standby { .. }, Some(_)) => PrimaryStart::TakingOver,
        (Startup::Standby { .. }, None) => PrimaryStart::Promoted,
        (Startup::Primary | Startup::Restored, _) => PrimaryStart::Started,
    };
    let first = identity.first_word(mark);
    let at = identity.instant(first);
    start::identity(&begun, &name, &identity.format, (mark != Mark::NOTHING_ISSUED).then(|| (mark.value(), at)));
    let lead = identity.limits.time(first).saturating_sub(now);
    match startup {
        _ if identity.registry_set => {}
        Startup::Standby { .. } if lead > guc::FARTHEST_AHEAD && !alone => start::former_primary(&name, lead),
        Startup::Restored if mark > Mark::NOTHING_ISSUED => start::restored(at, timestamp::of(now)),
        _ => {}
    }
}

/// Warns, in the postmaster, that a registry was added to the configuration of a server that was started without one.
pub fn registry_given() {
    if server::is_postmaster() && identity::find().is_some_and(|identity| !identity.registry_set) {
        fleet::registry_given();
    }
}
