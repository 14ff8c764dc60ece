//! The pending mark: the oldest mark that is written and not known to be durable. The first caller that finds it durable publishes
//! it.
#![cfg(not(loom))]

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use flake::{
    Epoch, Generation, GeneratorClock, IdFormat, Layout, Limits, Nanos, Pace, Pending, Reading, Request, Reservation,
    Run, State, pause,
};

const MS: Nanos = 1_000_000;
const START: Nanos = 1_700_000_000_000 * MS;
const UP: Nanos = 5_000 * MS;

/// The first word of the tick at [`START`].
fn due() -> u64 {
    (START / MS - Epoch::TWITTER.unix_ms() as u64) * 4_096
}

fn loaded() -> State {
    let state = State::new();
    assert!(state.load(
        state.generation(),
        due(),
        GeneratorClock::start(Reading { monotonic: UP, boot: UP, wall: START, apart: 0 }, 0)
    ));
    state
}

/// A mark that was written at `written`, with its other numbers derived from `number`.
fn pending(generation: Generation, number: u64, written: Nanos) -> Pending {
    let reservation = Reservation { ceiling: due() + number, renew: due() + number / 2 };
    Pending { generation, reservation, time: START + number, written, position: 1_000 + number }
}

fn drawn(state: &State) -> Option<Run> {
    let limits = Limits::of(&IdFormat { layout: Layout::TWITTER, epoch: Epoch::TWITTER });
    let pace = Pace { max_ahead: 100 * MS, random_start: false, overdue: false, waited: 0 };
    state.draw(&limits, pace, Request::UpTo(9), |_| START).ok().map(|drawn| drawn.run)
}

#[test]
fn the_oldest_mark_stays_until_it_is_settled() {
    let state = loaded();
    let generation = state.generation();
    assert_eq!(state.pending(), None);
    let (old, new) = (pending(generation, 2, UP), pending(generation, 20, UP + MS));
    state.note(&old);
    state.note(&new);
    assert_eq!(state.pending(), Some(old));
    assert_eq!(drawn(&state), None, "written is not durable");
    assert!(state.settle(&old, Some(5 * MS)));
    assert_eq!(drawn(&state), Some(Run { first: due(), count: 2 }));
    assert_eq!(state.pending(), None);
    // The next mark is noted again, and settling another one leaves it there.
    state.note(&new);
    assert!(state.settle(&old, Some(6 * MS)));
    assert_eq!(state.pending(), Some(new));
    assert!(state.settle(&new, Some(6 * MS)));
    assert_eq!(drawn(&state), Some(Run { first: due() + 2, count: 9 }));
}

#[test]
fn a_mark_of_an_earlier_generation_is_neither_seen_nor_published() {
    let state = loaded();
    let earlier = pending(state.generation(), 5, UP);
    state.note(&earlier);
    state.unload();
    assert_eq!(state.pending(), None);
    assert!(state.load(state.generation(), due(), state.clock()));
    assert_eq!(state.pending(), None);
    assert!(!state.settle(&earlier, Some(MS)));
    assert_eq!(drawn(&state), None);
    // It does not prevent a mark of this generation from being noted.
    state.note(&earlier);
    let current = pending(state.generation(), 3, UP);
    state.note(&current);
    assert_eq!(state.pending(), Some(current));
    // A late mark of an earlier generation does not replace it either.
    state.note(&earlier);
    assert!(!state.settle(&earlier, Some(MS)));
    assert_eq!(state.pending(), Some(current));
}

#[test]
fn what_a_late_acknowledgement_took_makes_the_next_window_longer_if_it_is_known() {
    let limits = Limits::of(&IdFormat { layout: Layout::TWITTER, epoch: Epoch::TWITTER });
    for (took, window) in [(Some(1_200 * MS), 4 * 1_200 * MS), (None, 1_000 * MS)] {
        let state = loaded();
        let mark = pending(state.generation(), 5, UP);
        state.note(&mark);
        assert!(state.settle(&mark, took));
        assert_eq!(state.settled(), (mark.written, mark.time));
        let next = state.next_reservation(&limits, START, due());
        assert_eq!(limits.time(next.ceiling) - START / MS * MS, window, "after {took:?}");
    }
}

#[test]
fn pauses_grow_with_the_time_waited() {
    let pauses = [0, 8, 80, 400, 4_000].map(|ms| pause(UP, UP + ms * MS) / MS);
    assert_eq!(pauses, [1, 1, 10, 50, 50]);
    // If the monotonic clock went back, the pause is the shortest one.
    assert_eq!(pause(UP, 0), MS);
}

#[test]
fn callers_in_advance_leave_a_mark_alone_for_a_pause() {
    let state = loaded();
    assert!(!state.postponed(UP));
    state.postpone(UP, 10 * MS);
    assert!(state.postponed(UP + 9 * MS));
    assert!(!state.postponed(UP + 10 * MS));
    // If the monotonic clock has gone back, callers do not leave the mark alone for hours.
    assert!(!state.postponed(UP / 2));
    state.postpone(UP, 10 * MS);
    state.unload();
    assert!(!state.postponed(UP));
}

#[test]
fn a_claim_can_be_kept_while_nobody_else_has_it() {
    let state = loaded();
    let mut claim = state.claim(UP, false).expect("nobody has it");
    assert!(state.keep(&mut claim, UP + 90 * MS, 10 * MS));
    assert!(state.claim(UP + 199 * MS, false).is_none());
    let mut next = state.claim(UP + 200 * MS, false).expect("it has ended");
    assert!(!state.keep(&mut claim, UP + 200 * MS, 10 * MS));
    state.release(&claim);
    assert!(state.keep(&mut next, UP + 210 * MS, 10 * MS));
    state.release(&next);
    assert!(state.claim(UP + 211 * MS, true).is_some());
}

#[test]
fn a_claim_that_ends_too_far_in_the_future_is_over() {
    let state = loaded();
    let late = state.claim(UP, true).expect("nobody has it");
    assert!(state.claim(UP - 400 * MS, false).is_none(), "the clock was read before it was taken");
    assert!(state.claim(UP - 600 * MS, false).is_some(), "the monotonic clock went back");
    state.release(&late);
    assert!(state.claim(UP - 600 * MS, false).is_none(), "the next has it");
}

#[test]
fn readers_beside_writers_find_whole_marks_only() {
    let state = loaded();
    let generation = state.generation();
    let (done, deadline) = (AtomicBool::new(false), Instant::now() + Duration::from_secs(60));
    let seen: u64 = thread::scope(|scope| {
        for writer in 1..=2 {
            let (state, done) = (&state, &done);
            scope.spawn(move || {
                for number in (writer..).step_by(2).take_while(|_| !done.load(Ordering::Relaxed)) {
                    let mark = pending(generation, number, UP + number);
                    state.note(&mark);
                    state.settle(&mark, None);
                }
            });
        }
        let reader = scope.spawn(|| {
            let mut seen = 0;
            // On a busy machine, the writers can begin late.
            while seen < 200_000 && Instant::now() < deadline {
                if let Some(found) = state.pending() {
                    assert_eq!(found, pending(generation, found.position - 1_000, UP + found.position - 1_000));
                    seen += 1;
                }
            }
            done.store(true, Ordering::Relaxed);
            seen
        });
        let seen = reader.join();
        // A reader that has found a torn mark ends the writers, too.
        done.store(true, Ordering::Relaxed);
        seen.expect("no mark is torn")
    });
    assert!(seen >= 200_000, "only {seen} marks were read");
}
