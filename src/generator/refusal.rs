//! Determines whether this server can issue IDs at all: whether it is a standby, whether it has a worker ID, and
//! whether the registry allows it to issue IDs. The module [`crate::generator::start`] contains the checks that depend
//! on the clock or on the mark.

use crate::config::identity::Identity;
use crate::fleet;
use crate::message::error::Error;
use crate::message::issue::IssueProblem;
use crate::pg::recovery;

/// Returns why this server does not issue IDs, if the reason depends neither on the clock nor on the mark.
pub fn of_server(identity: &Identity) -> Option<Error> {
    let standby = || recovery::in_recovery().then_some(IssueProblem::Standby.into());
    identity.refusal().or_else(standby).or_else(|| fleet::refusal::current(identity).map(Error::from))
}
