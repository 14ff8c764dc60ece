//! The messages between a server and the registry.

use core::error::Error;
use core::fmt;
use core::time::Duration;

use crate::IdFormat;

use super::Point;

/// A UUID: the identity of a fleet or of a holder, or a nonce.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid(pub u128);

/// A request, with the fields that are common to all requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    /// The fleet that the server belongs to, or `None` if it is not known yet.
    pub fleet: Option<Uuid>,
    /// The server's layout and epoch.
    pub format: IdFormat,
    /// The request itself.
    pub request: RegistryRequest,
}

/// A request from a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RegistryRequest {
    /// Requests the registry's life and a nonce.
    Hello {
        /// The number of this call. It is not sent. The server accepts an answer only once, and only as the answer to
        /// the last `hello`.
        serial: u64,
    },
    /// Requests a worker ID.
    Claim(ClaimRequest),
    /// Requests a higher bound.
    Renew(RenewRequest),
}

/// The arguments of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClaimRequest {
    /// The server's datacenter ID, or 0 if the layout has no datacenter field.
    pub datacenter: u32,
    /// The identity of the new holder. No other claim has the same holder, except repetitions of this claim.
    pub holder: Uuid,
    /// The life from the answer to `hello`, at least 1.
    pub life: u64,
    /// The nonce from the answer to `hello`.
    pub nonce: Uuid,
    /// The time of the server's wall clock.
    pub clock: Point,
    /// The lease that the server will request in its renewals, from [`super::MIN_LEASE`] to [`super::MAX_LEASE`].
    pub lease: Duration,
}

/// The arguments of a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RenewRequest {
    /// The server's datacenter ID, or 0 if the layout has no datacenter field.
    pub datacenter: u32,
    /// The worker ID that the server holds.
    pub worker: u32,
    /// The identity of the server as a holder.
    pub holder: Uuid,
    /// The count from the last answer, at least 1.
    pub count: u64,
    /// The life from the last answer, at least 1.
    pub life: u64,
    /// The nonce of the last answer.
    pub nonce: Uuid,
    /// The nonce for this renewal, from the answer to `hello`.
    pub next_nonce: Uuid,
    /// The start of the server's grant.
    pub start: Point,
    /// The bound of the server's grant.
    pub bound: Point,
    /// The time of the server's wall clock.
    pub clock: Point,
    /// How far ahead of its clock the server requests the bound to be, from [`super::MIN_LEASE`] to
    /// [`super::MAX_LEASE`].
    pub lease: Duration,
}

/// The registry's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RegistryAnswer {
    /// The answer to `hello`.
    Hello {
        /// The registry's fleet.
        fleet: Uuid,
        /// The registry's life, at least 1.
        life: u64,
        /// A nonce that the registry has generated for the next claim or renewal.
        nonce: Uuid,
    },
    /// The answer to a successful claim. The server now holds a worker ID.
    Claimed {
        /// The worker ID.
        worker: u32,
        /// The nonce of the claim.
        nonce: Uuid,
        /// How many times the worker ID has been claimed or renewed, at least 1.
        count: u64,
        /// The life in which the grant was made.
        life: u64,
        /// The lowest ID that the server may issue.
        start: Point,
        /// The highest ID that the server may issue.
        bound: Point,
    },
    /// The answer to a successful renewal. The server's bound has been raised.
    Renewed {
        /// The `next_nonce` from the renewal, which is now the nonce of the grant.
        nonce: Uuid,
        /// How many times the worker ID has been claimed or renewed.
        count: u64,
        /// The registry's life.
        life: u64,
        /// The highest ID that the server may issue.
        bound: Point,
        /// True if the server has a spare worker ID, and the ring has worker IDs again. The server then claims a worker
        /// ID from the ring and gives the spare one back.
        leave: bool,
    },
    /// The answer to a renewal of a lost worker ID. The server claims a new one.
    Lost(Loss),
    /// The answer to a renewal if a copy of the server has renewed the grant.
    Conflict {
        /// The time at which the copy made its last renewal.
        seen: Point,
    },
    /// The registry has refused the request, and has changed nothing.
    Refused(RegistryRefusal),
}

/// The reason why a server has lost its worker ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Loss {
    /// The bound has passed, so the registry may have assigned the worker ID to a different server.
    Expired,
    /// The worker ID belongs to a different server.
    GivenAway,
}

/// The reason why the registry refuses a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RegistryRefusal {
    /// The server belongs to a different fleet.
    ForeignFleet,
    /// The server's layout or epoch differs from the fleet's.
    Layout,
    /// The registry has begun a new life since the server called `hello`. The server calls `hello` again.
    Life,
    /// The registry is in quarantine, so it assigns no worker IDs from the ring, and no spare worker ID is free.
    Quarantine {
        /// The point after which claims succeed again. During the quarantine of the spare worker IDs, it is one margin
        /// above the end of that quarantine. After that, it is one margin above the lowest bound of a common spare
        /// worker ID or above the end of the quarantine, whichever comes first.
        until: Point,
    },
    /// The fleet does not grant IDs yet, because its layout has been changed, or because it was created with a start
    /// time that has not been reached.
    Floor {
        /// The point after which claims succeed: one margin above the floor.
        until: Point,
    },
    /// A worker ID is free, but the server's clock has not reached the first ID of its grant, or is so far behind the
    /// registry's clock that the server could not renew the grant.
    Clock {
        /// The point that the server's clock must pass.
        until: Point,
    },
    /// No worker ID is free.
    Full,
    /// The datacenter ID or the worker ID does not fit into its field.
    Range,
    /// The lease is out of range.
    Lease,
    /// The values in the renewal cannot come from any answer of the registry.
    Implausible,
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
