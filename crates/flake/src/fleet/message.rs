//! What a server and the registry tell each other.

use core::error::Error;
use core::fmt;
use core::time::Duration;

use crate::IdFormat;

use super::Point;

/// A UUID: the identity of a fleet or of a holder, or a nonce.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid(pub u128);

/// A request, with what every request carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The fleet that the server belongs to, or `None` until the server knows it.
    pub fleet: Option<Uuid>,
    /// The server's layout and epoch.
    pub format: IdFormat,
    /// What the server asks for.
    pub request: Request,
}

/// What a server asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Asks for the registry's life and for a nonce.
    Hello {
        /// The number of this call, which stays with the server: an answer is taken once, and only as the answer to the last hello.
        serial: u64,
    },
    /// Asks for a worker ID.
    Claim(Claim),
    /// Asks for a higher bound.
    Renew(Renew),
}

/// The arguments of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The server's datacenter ID, or 0 if the layout has no datacenter field.
    pub datacenter: u32,
    /// The identity of the new holder. No other claim has it, except repetitions of this one.
    pub holder: Uuid,
    /// The life that `hello` returned, from 1.
    pub life: u64,
    /// The nonce that `hello` returned.
    pub nonce: Uuid,
    /// The server's wall clock.
    pub clock: Point,
    /// The lease that the server will ask for in its renewals, from [`super::MIN_LEASE`] to [`super::MAX_LEASE`].
    pub lease: Duration,
}

/// The arguments of a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Renew {
    /// The server's datacenter ID, or 0 if the layout has no datacenter field.
    pub datacenter: u32,
    /// The worker ID that the server holds.
    pub worker: u32,
    /// The holder that the server is.
    pub holder: Uuid,
    /// The count that the last answer contained, from 1.
    pub count: u64,
    /// The life that the last answer contained, from 1.
    pub life: u64,
    /// The nonce of the last answer.
    pub nonce: Uuid,
    /// The nonce for this renewal, which `hello` returned.
    pub next_nonce: Uuid,
    /// The start of the server's grant.
    pub start: Point,
    /// The bound that the server has.
    pub bound: Point,
    /// The server's wall clock.
    pub clock: Point,
    /// How far ahead of its clock the server wants its bound to be, from [`super::MIN_LEASE`] to [`super::MAX_LEASE`].
    pub lease: Duration,
}

/// The registry's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The answer to `hello`.
    Hello {
        /// The registry's fleet.
        fleet: Uuid,
        /// The registry's life, from 1.
        life: u64,
        /// A nonce that the registry has made for the next claim or renewal.
        nonce: Uuid,
    },
    /// The answer to a claim: the server holds a worker ID.
    Claimed {
        /// The worker ID.
        worker: u32,
        /// The nonce of the claim.
        nonce: Uuid,
        /// How often the worker ID was claimed and renewed, from 1.
        count: u64,
        /// The life in which the grant was made.
        life: u64,
        /// The lowest ID that the server may issue.
        start: Point,
        /// The highest ID that the server may issue.
        bound: Point,
    },
    /// The answer to a renewal: the server has a higher bound.
    Renewed {
        /// The renewal's `next_nonce`, which is now the grant's nonce.
        nonce: Uuid,
        /// How often the worker ID was claimed and renewed.
        count: u64,
        /// The registry's life.
        life: u64,
        /// The highest ID that the server may issue.
        bound: Point,
    },
    /// The answer to a renewal: the server has no worker ID any more, and claims another one.
    Lost(Loss),
    /// The answer to a renewal: a copy of the server has renewed the grant.
    Conflict {
        /// When the other server made its last renewal.
        seen: Point,
    },
    /// The registry has changed nothing.
    Refused(Refusal),
}

/// Why a server has lost its worker ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The bound has passed, so that the registry may have given the worker ID to another server.
    Expired,
    /// Another server has the worker ID.
    GivenAway,
}

/// Why the registry refuses a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The server belongs to another fleet.
    ForeignFleet,
    /// The server's layout or epoch is not the fleet's.
    Layout,
    /// The registry has begun a new life since the server said hello. The server says hello again.
    Life,
    /// The registry gives no worker IDs during its quarantine, has no spare worker ID left, or has a floor that has not passed.
    Quarantine {
        /// The point after which claims succeed again: one margin above the end of the quarantine, or above the floor.
        until: Point,
    },
    /// No worker ID is free.
    Full,
    /// The datacenter ID or the worker ID does not fit into its field.
    Range,
    /// The lease is outside its range.
    Lease,
}

impl Loss {
    /// Returns the reason in the registry's answer.
    pub const fn reason(self) -> &'static str {
        match self {
            Loss::Expired => "expired",
            Loss::GivenAway => "given away",
        }
    }
}

impl Refusal {
    /// Returns the reason in the registry's answer.
    pub const fn reason(self) -> &'static str {
        match self {
            Refusal::ForeignFleet => "foreign fleet",
            Refusal::Layout => "layout",
            Refusal::Life => "life",
            Refusal::Quarantine { .. } => "quarantine",
            Refusal::Full => "full",
            Refusal::Range => "range",
            Refusal::Lease => "lease",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::ForeignFleet => "the server belongs to another fleet",
            Refusal::Layout => "the layout or the epoch of the server is not that of the fleet",
            Refusal::Life => "the registry has begun a new life",
            Refusal::Quarantine { .. } => "the registry gives no worker IDs during its quarantine",
            Refusal::Full => "no worker ID is free",
            Refusal::Range => "the datacenter ID or the worker ID does not fit into its field",
            Refusal::Lease => "the lease is out of range",
        })
    }
}

impl Error for Refusal {}
