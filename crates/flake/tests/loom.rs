//! The shared state under every order of its atomics that loom can find:
//! `RUSTFLAGS="--cfg loom" cargo test -p flake --test loom --release --target-dir target/loom`
#![cfg(loom)]

use std::panic::{AssertUnwindSafe, catch_unwind};

use flake::{Epoch, Layout, Limits, NO_CEILING, Nanos, Pace, Request, Run, Scheme, State, Step, step};
use loom::model::Builder;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

const MS: Nanos = 1_000_000;
const PACE: Pace = Pace { max_ahead: 100 * MS, random_start: false };
/// The tick of a clock at [`NOW`].
const TICK: u64 = 1_000;
const NOW: Nanos = Epoch::TWITTER.nanos() + TICK * MS;
/// The first word of [`TICK`].
const DUE: u64 = TICK * 4_096;

fn limits() -> Limits {
    Limits::of(&Scheme { layout: Layout::TWITTER, epoch: Epoch::TWITTER })
}

/// What is checked: a state that threads draw from, already loaded.
trait Generator: Send + Sync + 'static {
    fn loaded() -> Self;
    fn draw(&self, request: Request, now: Nanos) -> Run;
}

impl Generator for State {
    fn loaded() -> State {
        let state = State::new();
        state.load(1, NO_CEILING);
        state
    }

    fn draw(&self, request: Request, now: Nanos) -> Run {
        State::draw(self, &limits(), PACE, request, || now).expect("nothing stands in the way")
    }
}

/// A generator with the fault that the checks are there to find: another thread can draw between its load and store.
struct LoadThenStore(AtomicU64);

impl Generator for LoadThenStore {
    fn loaded() -> LoadThenStore {
        LoadThenStore(AtomicU64::new(0))
    }

    fn draw(&self, request: Request, now: Nanos) -> Run {
        let last = self.0.load(Ordering::SeqCst);
        let Step::Issue(run) = step(last, now, NO_CEILING, &limits(), PACE, request) else {
            panic!("nothing stands in the way");
        };
        self.0.store(run.last(), Ordering::SeqCst);
        run
    }
}

fn explore(preemptions: Option<usize>, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = preemptions;
    builder.check(model);
}

/// Each thread's clock, and what it asks for.
type Thread = (Nanos, &'static [Request]);

/// Lets the threads draw from one generator, in every order: all words are distinct, and each thread's increase. Where
/// all read the same clock, the words leave no gap.
fn check<G: Generator>(preemptions: Option<usize>, threads: &'static [Thread]) {
    explore(preemptions, move || {
        let generator = Arc::new(G::loaded());
        let drawing = |&(now, requests): &Thread| {
            let generator = generator.clone();
            thread::spawn(move || requests.iter().map(|&request| generator.draw(request, now)).collect())
        };
        let threads_drawing: Vec<_> = threads.iter().map(drawing).collect();
        let drawn: Vec<Vec<Run>> = threads_drawing.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert!(drawn.iter().all(|runs| increasing(runs)), "a thread's words do not increase: {drawn:?}");
        let mut all = drawn.concat();
        all.sort_by_key(|run| run.first);
        assert!(increasing(&all), "a word was drawn twice: {drawn:?}");
        if threads.iter().all(|(now, _)| *now == NOW) {
            assert_eq!(all[0].first, DUE);
            assert!(all.windows(2).all(|pair| pair[0].last() + 1 == pair[1].first), "words were lost: {drawn:?}");
        }
    });
}

fn increasing(runs: &[Run]) -> bool {
    runs.windows(2).all(|pair| pair[0].last() < pair[1].first)
}

const ONE: Request = Request::UpTo(1);
const THREE: Request = Request::UpTo(3);
const BLOCK: Request = Request::InOneTick(2);

const SAME_CLOCK: [Thread; 2] = [(NOW, &[ONE, THREE, BLOCK]), (NOW, &[BLOCK, ONE, THREE])];

#[test]
fn two_threads_draw_every_word_once() {
    check::<State>(None, &SAME_CLOCK);
}

#[test]
fn two_threads_whose_clocks_differ_draw_every_word_once() {
    // The second is a tick ahead, then the words of the first are the past of the other's.
    check::<State>(None, &[(NOW, &[ONE, BLOCK, THREE]), (NOW + MS, &[THREE, ONE, BLOCK])]);
}

#[test]
fn three_threads_draw_every_word_once() {
    check::<State>(Some(3), &[(NOW, &[ONE, THREE]), (NOW, &[THREE, BLOCK]), (NOW, &[BLOCK, ONE])]);
}

#[test]
fn three_threads_whose_clocks_differ_draw_every_word_once() {
    check::<State>(Some(3), &[(NOW, &[ONE, BLOCK]), (NOW + MS, &[THREE]), (NOW - MS, &[BLOCK, ONE])]);
}

#[test]
fn a_generator_that_loads_and_then_stores_is_caught() {
    let caught = catch_unwind(AssertUnwindSafe(|| check::<LoadThenStore>(None, &SAME_CLOCK)));
    let message = *caught.expect_err("the check passed").downcast::<String>().unwrap();
    assert!(message.starts_with("a word was drawn twice"), "{message}");
}

/// What two loaders of one state bring: the first word and the ceiling.
const LOADS: [(u64, u64); 2] = [(DUE + 100, DUE + 110), (DUE + 200, DUE + 210)];

fn draw_one(state: &State) -> Option<u64> {
    match state.draw(&limits(), PACE, ONE, || NOW) {
        Ok(run) => Some(run.first),
        Err(None) => None,
        // Also what a ceiling of 0, or of the loader that came too late, would look like.
        Err(Some(other)) => panic!("{other:?} of a loaded state"),
    }
}

#[test]
fn concurrent_loaders_load_once_and_all_see_the_ceiling_that_was_loaded() {
    explore(Some(3), || {
        let state = Arc::new(State::new());
        let loading = |(first, ceiling)| {
            let state = state.clone();
            thread::spawn(move || {
                state.load(first, ceiling);
                draw_one(&state).expect("a state is loaded for good")
            })
        };
        let loaders = LOADS.map(loading);
        // A third thread draws while they load, whatever it finds.
        let early = draw_one(&state);
        let mut words: Vec<u64> = loaders.into_iter().map(|loader| loader.join().unwrap()).chain(early).collect();
        words.extend(draw_one(&state));
        words.sort();
        // All from the one place where the first loader began, and none skipped.
        assert!(LOADS.iter().any(|&(first, _)| words[0] == first), "{words:?}");
        assert!(words.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{words:?}");
    });
}
