//! The protocol between a registry and the servers of a fleet. It determines which server holds which worker ID.
//!
//! A *registry* grants a server the IDs that contain one worker ID, up to a *bound*. The next holder of this worker ID
//! begins above the bound. Safety depends on the order of numbers, not on time. If a server sleeps past the end of its
//! grant, it cannot issue any more IDs, whatever its clock shows. A server renews its grant regularly, and each renewal
//! raises the bound by up to one *lease*. Between two renewals, the server does not need a connection.
//!
//! All times in the protocol are [`Point`]s. The point of a time is the first ID of the tick that contains the time.
//! [`Scale`] converts times to points. Points are compared with bounds and with each other. A point has *passed* on a
//! clock if it is below the point of that clock's time.
//!
//! # The parts
//!
//! - `Registry` is the model of the registry. `Registry::call` answers a [`Call`]. The functions in the registry's
//!   database must return the same answers and store the same records as this reference model. It is compiled only with
//!   the feature `reference`.
//! - [`Member`] is the server's side of the protocol. It decides which call the server sends next, what an answer
//!   means, and which IDs the server may issue ([`Grant`]).
//! - [`Record`] is the part of a member that survives a restart of PostgreSQL. It is the content of the *witness*, a
//!   file in an in-memory file system, which is lost when the machine restarts.
//! - [`Statement`] is a call in the form of an SQL statement for the registry's database.
//! - `Tags` assigns blocks of short numbers to the servers. It is the reference model for the functions of the same
//!   names, and is compiled only with the feature `reference`.
//!
//! # The rules
//!
//! 1. [`RegistryRequest::Hello`] returns a *nonce*, which the registry generates. Each claim and each renewal needs a
//!    new nonce. The server cannot generate it, because a copy of a server's memory produces the same random numbers as
//!    the original.
//! 2. [`RegistryRequest::Claim`] returns the next worker ID in ring order whose start has passed. The start is one
//!    [`MARGIN`] above the highest of three points: the previous holder's bound, the end of the last quarantine, and
//!    the floor in rule 7. The start must have passed on the clocks of both the registry and the server. For all other
//!    points, only the registry's clock is used. The first bound is only one margin ahead, so that a server that
//!    crashes repeatedly does not use up all worker IDs.
//! 3. [`RegistryRequest::Renew`] raises the bound. The request contains the previous nonce and the next one. The server
//!    stores the next nonce before it sends the request, and repeats the request with the same nonce until it gets an
//!    answer. If the registry's row contains neither nonce, a copy of the server has renewed the grant. The answer is
//!    then [`RegistryAnswer::Conflict`], and the server issues no IDs until it restarts.
//! 4. If the registry's state might be older than its answers, the registry begins a new *life* and a *quarantine* (the
//!    module `registry::life` defines when). The quarantine lasts until all bounds that can have been granted have
//!    passed. Until then, the registry assigns no worker IDs from the ring, and claims get *spare* worker IDs. These
//!    are renewed for only [`SPARE_LEASE`], so that their own quarantine is short. During that quarantine, claims get
//!    the *common* spare worker IDs if it is certain that the lost changes did not grant any of them. Otherwise, claims
//!    get worker IDs from the timeline's *slice*, which no earlier timeline has granted since the last calm timeline.
//!    After that quarantine, the common spare worker IDs are free again. When the quarantine of the ring is over, the
//!    answer to the renewal of a spare worker ID contains `leave`. The holder then claims a worker ID from the ring
//!    instead.
//! 5. In a new life, a renewal replaces the registry's row if the row is older. The order of the numbers decides which
//!    one is older. The first renewal in a new life must arrive before the bound has passed. Later renewals must arrive
//!    before the bound and one margin have passed.
//! 6. A server begins to issue IDs at the highest of these: its clock, its mark, the start of its grant, and
//!    [`Record::used`]. It issues IDs up to the bound.
//! 7. A change of the layout or the epoch sets a floor above every ID that can have been granted before the change. A
//!    grant that begins below the floor is never renewed, because the administrator can change the layout back within a
//!    lease.
//! 8. If a renewal does not match the row, and its values cannot come from any answer of the registry, the registry
//!    refuses it. Such a renewal changes nothing. As a result, a role that can call the functions cannot stop a server
//!    that holds a worker ID.
//!
//! Copied disks, restored backups, promoted standbys, network partitions, and wrong clocks on servers do no harm. The
//! clocks of the hosts that successively run the registry must not differ by more than one [`MARGIN`].

mod member;
mod message;
mod point;
mod record;
#[cfg(feature = "reference")]
mod registry_model;
mod statement;
mod windows;
mod worker_ids;

pub use member::{Effect, Grant, Member, MemberIdentity, MemberStanding};
pub use message::{Call, ClaimRequest, Loss, RegistryAnswer, RegistryRefusal, RegistryRequest, RenewRequest, Uuid};
pub use point::{
    COUNT_SLACK, FAR, FIRST_GRANT, MARGIN, MAX_LEASE, MIN_LEASE, NEAR, Point, PointSpan, SPARE_LEASE, Scale,
};
pub use record::{RECORD_SIZE, Record, USED_OFFSET};
#[cfg(feature = "reference")]
pub use registry_model::{
    Begun, Cursor, Fleet, Kept, LAST_NUMBER, Moment, NoBlock, Registry, RegistryRow, ReportAnswer, Skip, Source,
    TagBlock, TagRecord, Tags, Top, UNKNOWN_STEPS,
};
pub use statement::{Statement, micros};
pub use windows::{BLOCKS_IN_WINDOW, WINDOW, lost_windows};
pub use worker_ids::Ring;
