//! The messages between a server and the registry.

use core::error::Error;
use core::fmt;
use core::time::Duration;

use crate::IdFormat;

use super::Point;

/// A UUID: the identity of a fleet or of a holder, or a nonce.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid(pub u128);

/// A request, with the fields that every request contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    /// The fleet that the server belongs to, or `None` until the server knows it.
    pub fleet: Option<Uuid>,
    /// The server's layout and epoch.
    pub format: IdFormat,
    /// What the server asks for.
    pub request: RegistryRequest,
}

/// What a server asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RegistryRequest {
    /// Asks for the registry's life and for a nonce.
    Hello {
        /// The number of this call, which is not sent: the server accepts an answer only once, and only as the answer
        /// to the last hello.
        serial: u64,
    },
    /// Asks for a worker ID.
    Claim(ClaimRequest),
    /// Asks for a higher bound.
    Renew(RenewRequest),
}

/// The arguments of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClaimRequest {
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RenewRequest {
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RegistryAnswer {
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
        /// True if the worker ID is spare and the ring has worker IDs again. The server then claims one of these, and
        /// gives up the spare one.
        leave: bool,
    },
    /// The answer to a renewal: the server no longer has a worker ID, and claims a new one.
    Lost(Loss),
    /// The answer to a renewal: a copy of the server has renewed the grant.
    Conflict {
        /// When the other server made its last renewal.
        seen: Point,
    },
    /// The registry has changed nothing.
    Refused(RegistryRefusal),
}

/// Why a server has lost its worker ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Loss {
    /// The bound has passed, so the registry may have assigned the worker ID to a different server.
    Expired,
    /// Another server has the worker ID.
    GivenAway,
}

/// Why the registry refuses a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RegistryRefusal {
    /// The server belongs to a different fleet.
    ForeignFleet,
    /// The server's layout or epoch is not the fleet's.
    Layout,
    /// The registry has begun a new life since the server said hello. The server says hello again.
    Life,
    /// The registry assigns no worker IDs of the ring during its quarantine, and no spare worker ID is free.
    Quarantine {
        /// The point after which claims succeed again: one margin above the end of the quarantine of the spare worker IDs while this
        /// lasts, and then one margin above the first bound of a common spare worker ID or above the end of the quarantine.
        until: Point,
    },
    /// The fleet grants no IDs yet, because its layout was changed, or because it was created with a time at which it
    /// begins.
    Floor {
        /// The point after which claims succeed: one margin above the floor.
        until: Point,
    },
    /// A worker ID is free, but the server's clock has not reached the first ID of its grant.
    Clock {
        /// The point that the server's clock must have passed.
        until: Point,
    },
    /// No worker ID is free.
    Full,
    /// The datacenter ID or the worker ID does not fit into its field.
    Range,
    /// The lease is outside its range.
    Lease,
    /// No answer of the registry can have contained what the renewal says.
    Implausible,
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

impl RegistryRefusal {
    /// Returns the reason in the registry's answer.
    pub const fn reason(self) -> &'static str {
        match self {
            RegistryRefusal::ForeignFleet => "foreign fleet",
            RegistryRefusal::Layout => "layout",
            RegistryRefusal::Life => "life",
            RegistryRefusal::Quarantine { .. } => "quarantine",
            RegistryRefusal::Floor { .. } => "floor",
            RegistryRefusal::Clock { .. } => "clock",
            RegistryRefusal::Full => "full",
            RegistryRefusal::Range => "range",
            RegistryRefusal::Lease => "lease",
            RegistryRefusal::Implausible => "implausible",
        }
    }
}

impl fmt::Display for RegistryRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RegistryRefusal::ForeignFleet => "the server belongs to a different fleet",
            RegistryRefusal::Layout => "the server's layout or epoch differs from the fleet's",
            RegistryRefusal::Life => "the registry has begun a new life",
            RegistryRefusal::Quarantine { .. } => "the registry is in quarantine, and no spare worker ID is free",
            RegistryRefusal::Floor { .. } => "the fleet does not grant IDs yet",
            RegistryRefusal::Clock { .. } => "the server's clock is behind",
            RegistryRefusal::Full => "no worker ID is free",
            RegistryRefusal::Range => "the datacenter ID or the worker ID does not fit into its field",
            RegistryRefusal::Lease => "the lease is out of range",
            RegistryRefusal::Implausible => "the renewal contains values that the registry cannot have granted",
        })
    }
}

impl Error for RegistryRefusal {}
