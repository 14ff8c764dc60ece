//! The worker ID with which a session issues IDs if the registry assigns worker IDs.
//!
//! A session keeps an [`Identity`] with the worker ID for which the state is loaded. After each draw, it compares the
//! number of the identity's assignment with the state's ([`flake::Assignment`]). If the registrar has published a
//! different worker ID, the first session that notices this loads the state for the new worker ID. The module
//! [`crate::generator::grant_end`] stops sessions at the end of the lease.

use std::time::Duration;

use flake::Nanos;

use crate::config::identity::{self, Identity};
use crate::fleet::grant::{self, Standing};
use crate::fleet::refusal;
use crate::generator::mark_storage;
use crate::message::fleet::FleetProblem;
use crate::message::issue::IssueProblem;
use crate::pg::recovery;
use crate::pg::wait_event::WaitEvent;
use crate::server::{clock, shmem, wait};

/// How long a session waits for the first worker ID while the server starts. `POLL` is the interval between checks.
const PATIENCE: Nanos = 5_000_000_000;
const POLL: Duration = Duration::from_millis(10);

/// The number of failed heartbeats after which sessions stop waiting. The first heartbeats may fail if the registry and
/// the server start at the same time.
const FIRST_FAILURES: u64 = 3;

/// Returns the identity with which this session may currently issue IDs. Raises an error if there is none. If there is
/// no registry, returns the identity from the configuration.
#[cold]
pub fn take() -> &'static Identity {
    // Raises an error if the library is not preloaded.
    let own = identity::get();
    let state = shmem::state();
    if !own.registry_set {
        return own;
    }
    let begun = clock::monotonic();
    loop {
        // The assignment is read before the snapshot. If the assignment is revoked in the meantime, the attempt to
        // change it fails.
        let loaded = state.assignment().get();
        let snapshot =
            grant::published().unwrap_or_else(|| FleetProblem::NoWorkerId { outage: Box::default() }.raise());
        if snapshot.standing == Standing::Holding && snapshot.generation == loaded {
            let known = identity::issuing().filter(|identity| identity.assignment == loaded);
            return known.unwrap_or_else(|| identity::issue_with(snapshot.identity(own)));
        }
        if recovery::in_recovery() {
            IssueProblem::Standby.raise();
        }
        let starting = snapshot.standing == Standing::Seeking && snapshot.failures <= FIRST_FAILURES;
        let waited = clock::monotonic().saturating_sub(begun);
        match refusal::seen_in(own, &snapshot) {
            Some(error) if !starting || waited > PATIENCE => error.raise(),
            None => {
                mark_storage::wait_for_origin();
                if mark_storage::assign(loaded, snapshot.generation) {
                    continue;
                }
            }
            Some(_) => {}
        }
        wait::on_latch(WaitEvent::Mark, POLL);
    }
}
