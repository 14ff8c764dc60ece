//! The shared state as one thread sees it, and several real ones: `loom.rs` explores the orders they rarely meet in.
#![cfg(not(loom))]

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use flake::{Epoch, Layout, Limits, NO_CEILING, Nanos, Pace, Request, Run, Scheme, State, Step};

const START: Nanos = 1_700_000_000_000_000_000;
const PACE: Pace = Pace { max_ahead: 100_000_000, random_start: false };

fn limits() -> Limits {
    Limits::of(&Scheme { layout: Layout::TWITTER, epoch: Epoch::TWITTER })
}

/// The first word of the tick at [`START`].
fn due() -> u64 {
    (START / 1_000_000 - Epoch::TWITTER.unix_ms() as u64) * 4_096
}

fn draw(state: &State, request: Request) -> Result<Run, Option<Step>> {
    state.draw(&limits(), PACE, request, || START)
}

#[test]
fn nothing_is_issued_before_the_state_is_loaded() {
    for state in [State::new(), State::default()] {
        assert_eq!(draw(&state, Request::UpTo(1)), Err(None));
        assert_eq!(draw(&state, Request::InOneTick(1)), Err(None));
        state.load(1, NO_CEILING);
        assert_eq!(draw(&state, Request::UpTo(2)), Ok(Run { first: due(), count: 2 }));
        assert_eq!(draw(&state, Request::InOneTick(3)), Ok(Run { first: due() + 2, count: 3 }));
    }
}

#[test]
fn issuing_begins_where_it_was_loaded_and_ends_below_the_ceiling() {
    let state = State::new();
    state.load(due() + 10, due() + 12);
    assert_eq!(draw(&state, Request::InOneTick(3)), Err(Some(Step::Extend(due() + 13))));
    assert_eq!(draw(&state, Request::UpTo(3)), Ok(Run { first: due() + 10, count: 2 }));
    assert_eq!(draw(&state, Request::UpTo(3)), Err(Some(Step::Extend(due() + 13))));
}

#[test]
fn a_second_load_cannot_move_the_last_word_or_lower_the_ceiling() {
    let state = State::new();
    state.load(due() + 10, NO_CEILING);
    assert_eq!(draw(&state, Request::UpTo(1)), Ok(Run { first: due() + 10, count: 1 }));
    state.load(due(), 1);
    state.load(due() + 100, 0);
    assert_eq!(draw(&state, Request::UpTo(1)), Ok(Run { first: due() + 11, count: 1 }));
}

#[test]
fn every_load_may_raise_the_ceiling() {
    let state = State::new();
    state.load(due(), due() + 1);
    assert_eq!(draw(&state, Request::UpTo(1)), Ok(Run { first: due(), count: 1 }));
    assert_eq!(draw(&state, Request::UpTo(1)), Err(Some(Step::Extend(due() + 2))));
    state.load(due() + 100, due() + 3);
    assert_eq!(draw(&state, Request::UpTo(5)), Ok(Run { first: due() + 1, count: 2 }));
}

#[test]
fn loading_at_zero_begins_at_the_first_word_there_is() {
    let state = State::new();
    state.load(0, NO_CEILING);
    let epoch = Epoch::TWITTER.nanos();
    let run = state.draw(&limits(), PACE, Request::UpTo(1), || epoch).unwrap();
    assert!(run.first <= 1, "{run:?}");
}

#[test]
fn threads_draw_distinct_words_and_each_sees_them_increase() {
    const THREADS: usize = 4;
    const DRAWS: u64 = 50_000;
    let state = State::new();
    state.load(1, NO_CEILING);
    // A clock that all share and each moves on; a thread that waits moves it further.
    let clock = AtomicU64::new(START);
    let request = |number: u64| match number % 3 {
        0 => Request::UpTo(1),
        1 => Request::UpTo(100),
        _ => Request::InOneTick(10),
    };
    let together = Barrier::new(THREADS);
    let one = || {
        together.wait();
        let mut runs: Vec<Run> = Vec::new();
        while (runs.len() as u64) < DRAWS {
            match state.draw(&limits(), PACE, request(runs.len() as u64), || clock.fetch_add(50, Ordering::Relaxed)) {
                Ok(run) => runs.push(run),
                Err(Some(Step::Wait(wait))) => {
                    clock.fetch_add(wait.as_nanos() as u64, Ordering::Relaxed);
                }
                Err(other) => panic!("{other:?}"),
            }
        }
        runs
    };
    let all: Vec<Vec<Run>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(one)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let increasing = |runs: &[Run]| runs.windows(2).all(|pair| pair[0].last() < pair[1].first);
    assert!(all.iter().all(|runs| increasing(runs)));
    let mut drawn = all.concat();
    drawn.sort_by_key(|run| run.first);
    assert!(increasing(&drawn), "a word was drawn twice");
}
