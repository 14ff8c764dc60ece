//! The assignment of the worker ID under every order of its atomics that loom can find:
//! `RUSTFLAGS="--cfg loom" cargo test -p flake --test loom_assignment --release --target-dir target/loom`
#![cfg(loom)]

mod models;

use flake::{Epoch, GeneratorClock, IdFormat, Layout, Limits, Nanos, Pace, Request, Reservation, State};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use models::{caught, explore, thorough};

const MS: Nanos = 1_000_000;
const PACE: Pace = Pace { max_ahead: 100 * MS, random_start: false, overdue: false, waited: 0 };
const NOW: Nanos = Epoch::TWITTER.nanos() + 1_000 * MS;
const DUE: u64 = 1_000 * 4_096;
const CLOCK: GeneratorClock =
    GeneratorClock { offset: 0, reference: 0, seen: 0, hold_until: 0, compared_at: 0, apart: 0 };

/// The first word of each assignment. The words below belong to other servers.
const STARTS: [u64; 4] = [0, DUE, DUE + 100, DUE + 200];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AssignmentFault {
    None,
    /// A session does not compare the assignment after it has drawn words.
    NotCompared,
    /// A session takes the worker ID that is published, and not the one for which the state is loaded.
    Published,
    /// The registrar revokes each assignment with the same value.
    SameValue,
}

struct StateAndAssignment {
    state: State,
    /// What the registrar has published.
    published: AtomicU64,
}

impl StateAndAssignment {
    fn new() -> Arc<StateAndAssignment> {
        let state = State::new();
        assert!(state.assign(0, 1));
        let server = Arc::new(StateAndAssignment { state, published: AtomicU64::new(1) });
        server.load(1);
        server
    }

    /// Loads the state for an assignment and publishes a few words. The processes of a parallel query have one lock together, so
    /// there is none here.
    fn load(&self, assignment: u64) {
        let generation = self.state.generation();
        if self.state.assignment().get() == assignment && self.state.last().is_none() {
            self.state.load(generation, STARTS[assignment as usize], CLOCK);
        }
        let generation = self.state.generation();
        if self.state.last().is_some() && self.state.assignment().get() == assignment {
            let ceiling = STARTS[assignment as usize] + 10;
            self.state.publish(generation, Reservation { ceiling, renew: ceiling }, 0);
        }
    }

    /// Returns the assignment whose worker ID the session keeps.
    fn refresh(&self, fault: AssignmentFault) -> Option<u64> {
        let before = self.state.assignment().get();
        let published = self.published.load(Ordering::SeqCst);
        if published == 0 {
            return None;
        }
        if before != published && fault != AssignmentFault::Published {
            if !self.state.assign(before, published) {
                return None;
            }
        }
        self.load(published);
        Some(published)
    }

    /// Draws a word for the assignment. The clock is behind all words.
    fn draw(&self, assignment: u64, fault: AssignmentFault) {
        let limits = Limits::of(&IdFormat { layout: Layout::TWITTER, epoch: Epoch::TWITTER });
        let Ok(drawn) = self.state.draw(&limits, PACE, Request::UpTo(1), |offset| NOW - 50 * MS + offset) else {
            return;
        };
        if fault != AssignmentFault::NotCompared && self.state.assignment().get() != assignment {
            return;
        }
        let word = drawn.run.first;
        let (first, last) = (STARTS[assignment as usize], STARTS[assignment as usize] + 100);
        assert!((first..last).contains(&word), "word {} is not of assignment {assignment}", word - DUE);
    }

    fn revoke(&self, number: u64, fault: AssignmentFault) {
        self.published.store(0, Ordering::SeqCst);
        self.state.assignment().revoke(if fault == AssignmentFault::SameValue { 7 } else { number });
    }
}

/// A session draws while another one makes the next worker ID that of the state.
fn changing(fault: AssignmentFault) {
    explore(Some(3), move || {
        let server = StateAndAssignment::new();
        let session = {
            let server = server.clone();
            thread::spawn(move || {
                server.draw(1, fault);
                if let Some(assignment) = server.refresh(fault) {
                    server.draw(assignment, fault);
                }
            })
        };
        server.published.store(2, Ordering::SeqCst);
        if server.refresh(AssignmentFault::None).is_some() {
            server.draw(2, fault);
        }
        session.join().unwrap();
    });
}

/// Three sessions change the worker ID at the same time, as the processes of a parallel query do, which have one lock together. They are
/// two unless the run is thorough.
fn changing_at_once() {
    let others = if thorough() { 2 } else { 1 };
    explore(Some(1), move || {
        let server = StateAndAssignment::new();
        server.published.store(2, Ordering::SeqCst);
        let refresh = |server: &StateAndAssignment| {
            if let Some(assignment) = server.refresh(AssignmentFault::None) {
                server.draw(assignment, AssignmentFault::None);
            }
        };
        let start = |_| {
            let server = server.clone();
            thread::spawn(move || refresh(&server))
        };
        let sessions: Vec<_> = (0..others).map(start).collect();
        refresh(&server);
        sessions.into_iter().for_each(|session| session.join().unwrap());
    });
}

/// A session takes a worker ID that is revoked meanwhile. When everything is over, no session has it.
fn revoking(fault: AssignmentFault) {
    explore(None, move || {
        let server = StateAndAssignment::new();
        server.revoke(2, fault);
        server.published.store(3, Ordering::SeqCst);
        let session = {
            let server = server.clone();
            thread::spawn(move || server.refresh(fault))
        };
        server.revoke(4, fault);
        session.join().unwrap();
        assert_ne!(server.state.assignment().get(), 3, "a revoked assignment is in use");
    });
}

#[test]
fn the_words_that_a_session_keeps_belong_to_its_worker_id() {
    changing(AssignmentFault::None);
}

#[test]
fn the_words_of_sessions_that_change_the_worker_id_at_once_belong_to_it() {
    changing_at_once();
}

#[test]
fn words_that_are_not_compared_are_caught() {
    caught("is not of assignment", || changing(AssignmentFault::NotCompared));
}

#[test]
fn a_worker_id_for_which_the_state_is_not_loaded_is_caught() {
    caught("is not of assignment", || changing(AssignmentFault::Published));
}

#[test]
fn a_revoked_assignment_does_not_come_back() {
    revoking(AssignmentFault::None);
}

#[test]
fn revoking_twice_with_one_value_is_caught() {
    caught("a revoked assignment is in use", || revoking(AssignmentFault::SameValue));
}
