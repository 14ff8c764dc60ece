//! Why a server that uses a registry does not issue IDs: it has no worker ID, or its grant does not include the next
//! ID.

use crate::config::identity::Identity;
use crate::fleet::about;
use crate::fleet::grant::{self, Snapshot, Standing};
use crate::message::fleet::FleetProblem;

/// Returns why this server has no worker ID from the registry. Returns `None` if it has one or does not use a registry.
pub fn current(identity: &Identity) -> Option<FleetProblem> {
    seen_in(identity, &grant::published().unwrap_or_default()).filter(|_| identity.registry_set)
}

/// Returns why a snapshot contains no worker ID. Returns `None` if it contains one.
pub fn seen_in(identity: &Identity, snapshot: &Snapshot) -> Option<FleetProblem> {
    match snapshot.standing {
        Standing::Holding => None,
        Standing::Seeking => Some(FleetProblem::NoWorkerId { outage: Box::new(snapshot.outage()) }),
        Standing::Fenced => Some(FleetProblem::Fenced {
            name: identity.name(snapshot.node),
            host: about::host(),
            by: snapshot.fenced_by.clone(),
            seen: grant::scale(identity).time(snapshot.fenced_seen),
        }),
    }
}

/// Returns the error for a session whose IDs would be above the bound.
pub fn grant_ended(identity: &Identity, snapshot: &Snapshot) -> FleetProblem {
    FleetProblem::GrantEnded {
        name: identity.name(identity.node),
        until: snapshot.granted_until.into(),
        clock: grant::now().into(),
        outage: Box::new(snapshot.outage()),
    }
}
