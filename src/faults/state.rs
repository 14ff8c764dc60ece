//! The generator's state with faults.
#![allow(unsafe_code)]

use std::ops::Deref;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use flake::{
    Claim, ClockRules, CurrentTick, Disciplined, Drawn, GeneratorClock, Limits, Nanos, Obstacle, Pace, Pending,
    Reading, Request, Reservation, Run, Undecided,
};
use pgrx::pg_sys;

use super::{Fault, on, since_1970};

/// The generator's state. The methods of this type override those of [`flake::State`] that have the same name.
pub struct State(flake::State);

impl Deref for State {
    type Target = flake::State;

    /// Returns a separate state for this process if [`Fault::StatePerBackend`] is on.
    fn deref(&self) -> &flake::State {
        static OWN: OnceLock<flake::State> = OnceLock::new();
        if on(Fault::StatePerBackend) { OWN.get_or_init(flake::State::new) } else { &self.0 }
    }
}

impl State {
    /// Returns a state that issues nothing until it is loaded.
    pub fn new() -> State {
        State(flake::State::new())
    }

    /// Draws words with a different pace ([`Fault::NeverOverdue`]) or time ([`Fault::ClockBeforeState`],
    /// [`Fault::WallClock`]), or in spite of an obstacle ([`Fault::IssueInRecovery`], [`Fault::SilentWrap`]).
    pub fn draw(
        &self,
        limits: &Limits,
        pace: Pace,
        request: Request,
        mut clock: impl FnMut(u64) -> Nanos,
    ) -> Result<Drawn, Obstacle> {
        let pace = Pace { overdue: pace.overdue && !on(Fault::NeverOverdue), ..pace };
        let early = on(Fault::ClockBeforeState).then(|| clock(0));
        let mut time = |offset: u64| match early {
            Some(early) => early.wrapping_add(offset),
            None if on(Fault::WallClock) => {
                clock(offset);
                wall()
            }
            None => clock(offset),
        };
        let mut drawn = (**self).draw(limits, pace, request, &mut time);
        let not_loaded = drawn == Err(Obstacle::NotLoaded);
        poison(not_loaded);
        // SAFETY: the function reads shared memory.
        if not_loaded && on(Fault::IssueInRecovery) && unsafe { pg_sys::RecoveryInProgress() } {
            self.begin_without_mark(time(0));
            drawn = (**self).draw(limits, pace, request, &mut time);
        }
        // A server that starts after its last tick does not load a state.
        let ended = || limits.word_at(wall()).is_some_and(|word| word > limits.last_word());
        if on(Fault::SilentWrap) && (drawn == Err(Obstacle::Exhausted) || not_loaded && ended()) {
            return Ok(Drawn { run: Run { first: 1, count: 1 }, renew: false });
        }
        drawn
    }

    /// Draws nothing, so that the caller calls [`State::draw`].
    pub fn next(&self, _: &CurrentTick, _: Nanos, _: impl FnOnce(u64) -> Nanos) -> Result<Drawn, Undecided> {
        Err(Undecided::OtherTick)
    }

    /// Starts issuing IDs without a mark, because a standby cannot write a mark.
    fn begin_without_mark(&self, monotonic: Nanos) {
        let generation = self.generation();
        let reading = Reading { monotonic, boot: monotonic, wall: wall(), apart: 0 };
        self.load(generation, 1, GeneratorClock::start(reading, 0));
        self.publish(generation, Reservation { ceiling: u64::MAX, renew: u64::MAX }, 0);
    }

    /// Returns true if [`Fault::AssignmentIgnored`] is on.
    pub fn has_assignment(&self, number: u64) -> bool {
        on(Fault::AssignmentIgnored) || (**self).has_assignment(number)
    }

    /// Returns `None` if [`Fault::MarkBehind`] is on, so that the stored mark is not compared with the published one.
    pub fn published(&self) -> Option<u64> {
        (**self).published().filter(|_| !on(Fault::MarkBehind))
    }

    /// Returns `None` if [`Fault::PendingForgotten`] is on.
    pub fn pending(&self) -> Option<Pending> {
        (**self).pending().filter(|_| !on(Fault::PendingForgotten))
    }

    /// Keeps the claim if [`Fault::ClaimKept`] is on.
    pub fn release(&self, claim: &Claim) {
        if !on(Fault::ClaimKept) {
            (**self).release(claim);
        }
    }

    /// Raises an error if [`Fault::RenewalRaises`] is on and no mark could be written.
    pub fn postpone(&self, now: Nanos, pause: Nanos) {
        if on(Fault::RenewalRaises) && self.pending().is_none() {
            pgrx::error!("the reservation cannot be extended in advance");
        }
        (**self).postpone(now, pause);
    }

    /// Compares the clocks as if the monotonic clock had not gone backward if [`Fault::RestoreUnnoticed`] is on.
    pub fn discipline(&self, read: impl FnOnce() -> Reading, issued: Nanos, rules: &ClockRules) -> Disciplined {
        let read = || {
            let reading = read();
            let least = if on(Fault::RestoreUnnoticed) { self.clock().compared_at } else { 0 };
            Reading { monotonic: reading.monotonic.max(least), ..reading }
        };
        (**self).discipline(read, issued, rules)
    }
}

/// Simulates a lock if [`Fault::PoisonedLock`] is on. A session holds it from the time when it finds the state not
/// loaded until it has loaded the state. An error that is raised in between leaves the lock poisoned.
fn poison(not_loaded: bool) {
    static HELD: AtomicBool = AtomicBool::new(false);
    if on(Fault::PoisonedLock) && HELD.swap(not_loaded, Ordering::Relaxed) && not_loaded {
        panic!("the lock is poisoned");
    }
}

fn wall() -> Nanos {
    since_1970().as_nanos() as Nanos
}
