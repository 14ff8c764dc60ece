//! The highest ID that this server may issue, which is the bound of its grant from the registry. If the grant is not
//! renewed, sessions stop issuing IDs at the bound, which is the end of the lease. Without a registry, there is no
//! bound.

use flake::Reservation;

use crate::config::identity::Identity;
use crate::fleet::grant::{self, Snapshot};
use crate::fleet::refusal;
use crate::message::fleet::FleetProblem;

/// Why a reservation cannot be made.
pub enum ReservationLimit {
    /// The registrar has published a different worker ID, or has published that there is none.
    Changed,
    /// The words are above the bound.
    Ended(Box<Snapshot>),
}

/// Returns the part of a reservation that the grant covers. The result must contain the word below `needed`. Without a
/// registry, returns the whole reservation.
pub fn within_grant(
    identity: &Identity,
    reservation: Reservation,
    needed: u64,
) -> Result<Reservation, ReservationLimit> {
    if !grant::limits(identity) {
        return Ok(reservation);
    }
    let snapshot = grant::published().filter(|snapshot| snapshot.holds(identity)).ok_or(ReservationLimit::Changed)?;
    match snapshot.ceiling(identity) {
        ceiling if ceiling < needed => Err(ReservationLimit::Ended(Box::new(snapshot))),
        ceiling => Ok(Reservation { ceiling: reservation.ceiling.min(ceiling), renew: reservation.renew.min(ceiling) }),
    }
}

/// Returns the error for a session that needs the word `next`, if that word is above the bound.
pub fn ended_before(identity: &Identity, next: u64) -> Option<FleetProblem> {
    match grant::published().filter(|snapshot| grant::limits(identity) && snapshot.holds(identity)) {
        Some(snapshot) if snapshot.ceiling(identity) <= next => Some(refusal::grant_ended(identity, &snapshot)),
        _ => None,
    }
}
