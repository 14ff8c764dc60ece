//! Which server of a fleet has which worker ID: the protocol between a registry and its servers.
//!
//! A *registry* grants a server the IDs of one worker ID up to a *bound*. The next holder of this worker ID begins above that bound.
//! Safety depends on the order of numbers, and not on time. A server that sleeps past the end of its grant finds that
//! it may not issue any more IDs, whatever its clock shows. A server renews its grant regularly, and each renewal
//! raises the bound by up to one *lease*. Between two renewals, the server needs no connection.
//!
//! All times in the protocol are [`Point`]s: the first ID of the tick that contains the time. [`Scale`] does the conversion. Points
//! are compared with bounds and with each other. A point has *passed* if it is below the point of the clock in question.
//!
//! # The parts
//!
//! - `Registry` is the registry: `Registry::call` answers a [`Call`]. It is the reference for the functions that run in the registry's
//!   database, and is compiled only with the feature `reference`. These functions must give the same answers and store the same records.
//! - [`Member`] is the server's side: which call to send next, what an answer means, and which IDs may be issued ([`Grant`]).
//! - [`Record`] is the part of a member that outlives a restart of PostgreSQL: the content of the *witness*, a file in a memory
//!   filesystem that is lost when the machine restarts.
//! - [`Statement`] is a call as SQL for the registry's database.
//! - `Tags` assigns blocks of short numbers to the servers. It is the reference for the functions of the same names,
//!   and is compiled only with the feature `reference`.
//!
//! # The rules
//!
//! 1. [`RegistryRequest::Hello`] returns a *nonce* that the registry makes. Every claim and every renewal needs a new one, because a
//!    copy of a server's memory produces the same random numbers as the original.
//! 2. [`RegistryRequest::Claim`] returns the next worker ID in ring order for which a start has passed. The start is one [`MARGIN`] above
//!    the previous holder's bound, the end of the last quarantine and the floor of rule 7. The start must have passed by the clocks of
//!    the registry and of the server. All other points need to have passed only by the registry's clock. The first bound is only one
//!    margin ahead, so that a server that crashes repeatedly does not use up the worker IDs.
//! 3. [`RegistryRequest::Renew`] raises the bound. It names the previous nonce and the next one. The server stores the next nonce before it
//!    sends the request, and repeats the request with the same nonce until it has an answer. If the registry has neither nonce, a
//!    copy of the server has renewed the grant: the answer is [`RegistryAnswer::Conflict`], and the server issues no IDs until it restarts.
//! 4. If the registry's state might be older than what it has answered, the registry begins a new *life* and a *quarantine*
//!    (module `registry::life` says when). The quarantine lasts until everything that can have been granted has passed. Until then,
//!    the ring has no worker IDs to assign, and claims get *spare* worker IDs. These are renewed for [`SPARE_LEASE`]
//!    only, so that their own quarantine is short. During that quarantine, claims get the *common* spare worker IDs if
//!    it is certain that none of these was granted in the lost part. Otherwise, claims get those of the timeline's
//!    *slice*, which no timeline since the last calm one has granted. After that quarantine, the common ones are free
//!    again. When the quarantine of the ring is over, the answer to the renewal of a spare worker ID contains `leave`,
//!    and its holder claims a worker ID of the ring instead.
//! 5. In a new life, a renewal replaces the registry's row if the row is older. The order in ID space decides. The first renewal in a
//!    new life must come before the bound has passed, and the later ones before the bound and one margin have passed.
//! 6. A server issues IDs from the greatest of its clock, its mark, the start of its grant and [`Record::used`], up to the bound.
//! 7. A change of the layout or the epoch sets a floor above every ID that can have been granted with the previous one. No grant
//!    that begins below the floor is renewed, because the administrator can change the layout back within a lease.
//! 8. A renewal that does not match the row is refused, and changes nothing, if no answer of the registry can have contained what it
//!    says. As a result, a role that may call the functions cannot stop a server that holds a worker ID.
//!
//! Copied disks, restored backups, promoted standbys, partitions, and any clocks of the servers are harmless. The clocks of hosts
//! that run the registry one after the other must not differ by more than one [`MARGIN`].

mod member;
mod message;
mod point;
mod record;
#[cfg(feature = "reference")]
mod registry;
mod ring;
#[cfg(feature = "reference")]
mod rows;
mod statement;
#[cfg(feature = "reference")]
mod tag;
mod windows;

pub use member::{Effect, Grant, Member, MemberIdentity, MemberStanding};
pub use message::{Call, ClaimRequest, Loss, RegistryAnswer, RegistryRefusal, RegistryRequest, RenewRequest, Uuid};
pub use point::{
    COUNT_SLACK, FAR, FIRST_GRANT, MARGIN, MAX_LEASE, MIN_LEASE, NEAR, Point, PointSpan, SPARE_LEASE, Scale,
};
pub use record::{RECORD_SIZE, Record, USED_OFFSET};
#[cfg(feature = "reference")]
pub use registry::{Moment, Registry};
pub use ring::Ring;
#[cfg(feature = "reference")]
pub use rows::{Cursor, Fleet, RegistryRow, Source};
pub use statement::{Statement, micros};
#[cfg(feature = "reference")]
pub use tag::{Begun, Kept, LAST_NUMBER, NoBlock, ReportAnswer, Skip, TagBlock, TagRecord, Tags, Top, UNKNOWN_STEPS};
pub use windows::{BLOCKS_IN_WINDOW, WINDOW, lost_windows};
