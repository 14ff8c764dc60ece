//! Issues IDs: the path from an SQL call to the shared state, and what a session does if the state cannot grant its
//! request.

use std::time::Duration;

use flake::{CurrentTick, Drawn, Limits, Nanos, Obstacle, Pace, Request, Run, Undecided};

use crate::config::guc;
use crate::config::identity::{self, Identity};
use crate::config::turn;
use crate::generator::{assigned, current, extend, start};
use crate::message::clock::ClockProblem;
use crate::message::layout::LayoutProblem;
use crate::server::shmem::{self, State};
use crate::server::stats::{self, Count};
use crate::server::{clock, wait};

/// The tick of this process's previous ID. Only its single thread accesses the variable.
static CURRENT_TICK: CurrentTick = CurrentTick::new();

/// IDs that belong to this session, in the order in which they were issued.
pub struct Issued {
    identity: &'static Identity,
    run: Run,
}

/// How long a request has been throttled, and whether it is overdue. An overdue request for more than one ID is granted
/// like a request for one ID. Otherwise, it might wait forever if other sessions drew every ID as soon as possible.
struct Overdue {
    /// How far ahead of the clock the request may run.
    ahead: Nanos,
    /// The time of the monotonic clock at which the request was first throttled, or 0 if it has not been throttled yet.
    since: Nanos,
    /// True if the next attempt treats the request like a request for a single ID.
    now: bool,
    /// How long the request has been throttled.
    waited: Nanos,
}

impl Overdue {
    /// Returns the initial value for a new request.
    #[inline(always)]
    fn new(request: Request) -> Overdue {
        let ahead = if request.is_single() { turn::ahead() } else { guc::pace().max_ahead };
        Overdue { ahead, since: 0, now: false, waited: 0 }
    }

    /// Updates this value after a throttled request has slept since `begun`.
    fn waited(&mut self, request: Request, begun: Nanos, limits: &Limits, pace: Pace) {
        let now = clock::monotonic();
        if self.since == 0 {
            self.since = begun;
        }
        self.ahead = pace.max_ahead;
        if request.is_single() {
            turn::slept(now, limits, pace);
        }
        // The request has waited, even if the resolution of the clock is too coarse to show it.
        self.waited = now.saturating_sub(self.since).max(1);
        let late = !request.is_single() && self.waited >= pace.max_ahead;
        self.now = late && shmem::state().bulk().takes_overdue(now, pace.max_ahead);
    }

    /// Records that a request for more than one ID has been granted.
    fn granted(&self, identity: &Identity, run: Run) {
        let (bulk, now) = (shmem::state().bulk(), clock::monotonic());
        if self.now {
            bulk.granted_overdue(now, identity.limits.span(run.count));
        } else {
            bulk.granted(now);
        }
    }
}

/// Issues the IDs for one request. A request for one ID usually gets the ID that follows the last one.
#[inline(always)]
pub fn draw(request: Request) -> Issued {
    // Without an identity, the library may not be preloaded, and the shared memory may not exist.
    if let Some(identity) = identity::issuing().filter(|_| request.is_single()) {
        let state = shmem::state();
        match state.next(&CURRENT_TICK, turn::ahead(), |offset| clock::monotonic().wrapping_add(offset)) {
            // The word is discarded if the state is loaded for a different worker ID (see [`flake::Assignment`]).
            Ok(drawn) if state.has_assignment(identity.assignment) => return issued(identity, drawn),
            Err(Undecided::Contended) => stats::add(Count::Retries, 1),
            _ => {}
        }
    }
    decide(request)
}

/// Issues the IDs for one request. Removes obstacles and retries until the request is granted.
#[cold]
#[inline(never)]
fn decide(request: Request) -> Issued {
    let mut identity = identity::issuing().unwrap_or_else(|| assigned::take());
    let state = shmem::state();
    let mut overdue = Overdue::new(request);
    loop {
        let drawn = match attempt(state, identity, request, &overdue) {
            Ok(drawn) => Some(drawn),
            Err(obstacle) => {
                if identity.registry_set {
                    identity = assigned::take();
                }
                clear(identity, obstacle, request, &mut overdue)
            }
        };
        if let Some(drawn) = drawn {
            // The words are discarded here, too, if the state is loaded for a different worker ID.
            if !state.has_assignment(identity.assignment) {
                identity = assigned::take();
                continue;
            }
            if !request.is_single() {
                overdue.granted(identity, drawn.run);
            }
            return issued(identity, drawn);
        }
    }
}

/// Returns the IDs of words that were drawn.
#[inline(always)]
fn issued(identity: &'static Identity, Drawn { run, renew }: Drawn) -> Issued {
    if renew {
        extend::renew(identity);
    }
    stats::add(Count::Issued, run.count);
    Issued { identity, run }
}

/// Makes one attempt to draw, without locks, calls into PostgreSQL, or allocations.
fn attempt(state: &State, identity: &Identity, request: Request, overdue: &Overdue) -> Result<Drawn, Obstacle> {
    let pace = Pace { overdue: overdue.now, waited: overdue.waited, ..guc::pace_with(overdue.ahead) };
    // Each attempt reads the clock once, so the number of attempts equals the number of clock reads.
    let mut attempts = 0;
    let drawn = state.draw(&identity.limits, pace, request, |offset| {
        attempts += 1;
        clock::monotonic().wrapping_add(offset)
    });
    if attempts > 1 {
        stats::add(Count::Retries, attempts - 1);
    }
    if request.is_single()
        && let Ok(drawn) = &drawn
    {
        CURRENT_TICK.remember(&identity.limits, drawn.run.first, turn::ahead());
    }
    drawn
}

impl Issued {
    /// Takes and returns the next ID, or returns `None` if no IDs are left.
    #[inline]
    pub fn take(&mut self) -> Option<i64> {
        if self.run.count == 0 {
            return None;
        }
        let word = self.run.first;
        self.run.first += 1;
        self.run.count -= 1;
        Some(current::set(self.identity.stamp.id(word)))
    }

    /// Takes all remaining IDs as one block, and returns the first ID of the block.
    pub fn take_block(self) -> i64 {
        let stamp = &self.identity.stamp;
        current::set(stamp.id(self.run.last()));
        stamp.id(self.run.first)
    }
}

/// Removes the obstacle that keeps the state from granting a request. Raises an error if the obstacle cannot be
/// removed. Returns the words for the request if they were drawn in the process.
#[cold]
fn clear(identity: &Identity, obstacle: Obstacle, request: Request, overdue: &mut Overdue) -> Option<Drawn> {
    match obstacle {
        Obstacle::NotLoaded => start::load(identity),
        Obstacle::Throttled(time) => {
            let pace = guc::pace();
            if request.is_single() && overdue.since == 0 && turn::ends(clock::monotonic(), &identity.limits, pace) {
                overdue.ahead = pace.max_ahead;
                return None;
            }
            let most = Duration::from_nanos(pace.max_ahead.saturating_add(2 * identity.limits.tick().nanos()));
            // If the wait is longer than the settings allow, either the settings were changed or the monotonic clock
            // has gone backward.
            if time <= most || !extend::recheck_clock(identity) {
                let begun = clock::monotonic();
                wait::throttled(time);
                overdue.waited(request, begun, &identity.limits, pace);
            }
        }
        Obstacle::NotReserved(word) => {
            let time = extend::extend_to(identity, word)?;
            return match attempt(shmem::state(), identity, request, overdue) {
                // The words are drawn at the time for which the reservation was made. If a disk or a standby takes
                // longer than one window, the current time is already past the reservation when its mark becomes
                // durable. A session that drew at the current time would then extend the reservation forever.
                Err(Obstacle::NotReserved(_)) => shmem::state().draw(&identity.limits, guc::pace(), request, |_| time),
                drawn => drawn,
            }
            .ok()
            // This session has just extended the reservation.
            .map(|drawn| Drawn { renew: false, ..drawn });
        }
        Obstacle::Exhausted => LayoutProblem::Exhausted { format: identity.format }.raise(),
        Obstacle::BeforeEpoch => {
            if !extend::recheck_clock(identity) {
                ClockProblem::BeforeEpoch { epoch: identity.format.epoch }.raise()
            }
        }
    }
    None
}
