//! The IDs that only this server can have issued. A guard compares the IDs in replicated rows with them.

use flake::Mark;

use crate::config::identity::{self, Identity};
use crate::faults::{self, Fault};
use crate::fleet::grant::{self, Standing};
use crate::generator::mark_storage;
use crate::pg::timestamp;
use crate::server::{clock, shmem};

/// A range of IDs with this server's worker ID.
pub struct OwnRange {
    identity: Identity,
    /// The first and the last ID of the range.
    pub first: i64,
    last: i64,
}

impl OwnRange {
    pub fn contains(&self, id: i64) -> bool {
        let (mask, number) = self.identity.stamp.node_field();
        (self.first..=self.last).contains(&id) && id & mask == number
    }

    /// Returns this server's worker ID and datacenter ID, for messages.
    pub fn name(&self) -> String {
        self.identity.name(self.identity.node)
    }

    /// Returns the time of an ID, in microseconds since the Unix epoch.
    pub fn time(&self, id: i64) -> i128 {
        self.identity.format.instant((id >> self.identity.format.layout.timestamp_shift()) as u64)
    }
}

/// Returns the IDs at or above `first` that only this server can have issued. Returns `None` if this server does not
/// issue IDs.
///
/// If the server uses a registry, these are the IDs of its grant: a different server can have issued IDs below the
/// start of the grant, and can issue IDs above its bound. A server that has lost its worker ID or is fenced has issued
/// IDs of its last grant. It still refuses rows from a different server that have these IDs.
pub fn own(first: i64) -> Option<OwnRange> {
    let identity = identity::find()?;
    let Some(snapshot) = grant::published() else {
        let last = identity.format.layout.last_id();
        return identity.worker_set.then(|| OwnRange { identity: identity.clone(), first, last });
    };
    if snapshot.granted_until == 0 {
        return None;
    }
    let last = match snapshot.standing {
        Standing::Holding => snapshot.bound,
        // The bound is no longer published, so that no IDs are issued below it.
        Standing::Seeking | Standing::Fenced => grant::scale(identity).point(snapshot.granted_until),
    };
    let (start, last) =
        if faults::on(Fault::GrantUnguarded) { (0, i64::MAX) } else { (snapshot.start.id(), last.id()) };
    let identity = identity.assigned(snapshot.generation, snapshot.node, Mark::NOTHING_ISSUED);
    Some(OwnRange { identity, first: first.max(start), last })
}

/// Returns the first ID that this server can issue from now on. This ID is above all IDs that the server has issued.
pub fn next() -> i64 {
    let identity = &grant::identity().unwrap_or_else(|| identity::get().clone());
    let state = shmem::state();
    let last = state.last().filter(|_| identity.worker_set && state.assignment().get() == identity.assignment);
    if let Some(last) = last {
        let now = identity.limits.word_at(state.clock().time(clock::monotonic())).unwrap_or(0);
        return identity.stamp.id(now.max(last + 1).min(identity.limits.last_word()));
    }
    // The server will start issuing IDs at the clock or at the mark, whichever is later.
    let mark = mark_storage::read().ok().filter(|_| identity.worker_set).map_or(0, Mark::value);
    let now = identity.format.min_id(timestamp::of(clock::wall())).unwrap_or(0);
    now.max(i64::try_from(mark).unwrap_or(i64::MAX))
}
