//! The shared state under every order of its atomics that loom can find:
//! `RUSTFLAGS="--cfg loom" cargo test -p flake --test loom --release --target-dir target/loom`
#![cfg(loom)]

mod models;

use std::sync::{Mutex as StdMutex, atomic::AtomicU64 as StdAtomicU64};

use flake::{
    ClockEvent, ClockRules, CurrentTick, Epoch, GeneratorClock, IdFormat, Layout, Limits, Nanos, Obstacle,
    OnRegression, Pace, Pending, Reading, Request, Reservation, Run, State, step,
};
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;
use models::{caught, explore};

const MS: Nanos = 1_000_000;
const PACE: Pace = Pace { max_ahead: 100 * MS, random_start: false, overdue: false, waited: 0 };
/// The tick of a clock at [`NOW`].
const TICK: u64 = 1_000;
const NOW: Nanos = Epoch::TWITTER.nanos() + TICK * MS;
/// The first word of [`TICK`].
const DUE: u64 = TICK * 4_096;

fn limits() -> Limits {
    Limits::of(&IdFormat { layout: Layout::TWITTER, epoch: Epoch::TWITTER })
}

/// The monotonic clock equals the wall clock here.
const CLOCK: GeneratorClock =
    GeneratorClock { offset: 0, reference: 0, seen: 0, hold_until: 0, compared_at: 0, apart: 0 };

fn below(ceiling: u64) -> Reservation {
    Reservation { ceiling, renew: ceiling }
}

fn issuing(first: u64, ceiling: u64) -> State {
    let state = State::new();
    state.load(state.generation(), first, CLOCK);
    assert!(state.publish(state.generation(), below(ceiling), 0));
    state
}

fn draw(state: &State, request: Request) -> Result<Run, Obstacle> {
    state.draw(&limits(), PACE, request, |offset| NOW + offset).map(|drawn| drawn.run)
}

/// Draws like a session: a request for one word first tries the remembered tick.
fn draw_like_a_session(state: &State, request: Request, now: Nanos) -> Run {
    if request.is_single() {
        let current = CurrentTick::new();
        if let Some(first) = limits().word_at(now) {
            current.remember(&limits(), first, PACE.max_ahead);
        }
        if let Ok(drawn) = state.next(&current, PACE.max_ahead, |offset| now + offset) {
            return drawn.run;
        }
    }
    let drawn = state.draw(&limits(), PACE, request, |offset| now + offset);
    drawn.expect("nothing stands in the way").run
}

/// Draws with the fault that the checks must find: another thread can draw between the load and the store.
fn load_then_store(last: &AtomicU64, request: Request, now: Nanos) -> Run {
    let Ok(run) = step(last.load(Ordering::SeqCst), now, u64::MAX, &limits(), PACE, request) else {
        panic!("nothing stands in the way");
    };
    last.store(run.last(), Ordering::SeqCst);
    run
}

/// Each thread's clock, and its requests.
type Thread = (Nanos, &'static [Request]);

/// Lets the threads draw from one generator, in every order. All words are distinct, and the words of each thread increase. If all
/// threads read the same clock, the words leave no gap.
fn check<G: Send + Sync + 'static>(
    preemptions: Option<usize>,
    threads: &'static [Thread],
    new: fn() -> G,
    draw: fn(&G, Request, Nanos) -> Run,
) {
    explore(preemptions, move || {
        let generator = Arc::new(new());
        let drawing = |&(now, requests): &Thread| {
            let generator = generator.clone();
            thread::spawn(move || requests.iter().map(|&request| draw(&generator, request, now)).collect())
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

/// Checks sessions that draw from a loaded state.
fn check_sessions(preemptions: Option<usize>, threads: &'static [Thread]) {
    check(preemptions, threads, || issuing(1, u64::MAX), draw_like_a_session);
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
    check_sessions(None, &SAME_CLOCK);
}

#[test]
fn two_threads_whose_clocks_differ_draw_every_word_once() {
    // The clock of the second thread is a tick ahead, so that words of the first can be in its past.
    check_sessions(None, &[(NOW, &[ONE, BLOCK, THREE]), (NOW + MS, &[THREE, ONE, BLOCK])]);
}

#[test]
fn three_threads_draw_every_word_once() {
    check_sessions(Some(3), &[(NOW, &[ONE, THREE]), (NOW, &[THREE, BLOCK]), (NOW, &[BLOCK, ONE])]);
}

#[test]
fn three_threads_whose_clocks_differ_draw_every_word_once() {
    check_sessions(Some(3), &[(NOW, &[ONE, BLOCK]), (NOW + MS, &[THREE]), (NOW - MS, &[BLOCK, ONE])]);
}

#[test]
fn a_generator_that_loads_and_then_stores_is_caught() {
    caught("a word was drawn twice", || check(None, &SAME_CLOCK, || AtomicU64::new(0), load_then_store));
}

#[test]
fn concurrent_loaders_load_once_and_each_can_draw_below_what_it_has_published() {
    explore(Some(3), || {
        let shared = Arc::new(State::new());
        let loading = |first| {
            let shared = shared.clone();
            thread::spawn(move || {
                let state = &*shared;
                // Without a lock, because the processes of a parallel query share their locks.
                while !state.load(state.generation(), first, CLOCK) && state.last().is_none() {
                    thread::yield_now();
                }
                assert!(state.publish(state.generation(), below(DUE + 300), 0));
                draw(state, ONE).expect("loaded and published").first
            })
        };
        let loaders = [DUE + 100, DUE + 200].map(loading);
        // A third thread draws while they load. It gets a word or none.
        let early = match draw(&shared, ONE) {
            Ok(run) => Some(run.first),
            Err(Obstacle::NotLoaded | Obstacle::NotReserved(_)) => None,
            Err(other) => panic!("{other:?}"),
        };
        let mut words: Vec<u64> = loaders.into_iter().map(|loader| loader.join().unwrap()).chain(early).collect();
        words.extend(draw(&shared, ONE).map(|run| run.first));
        words.sort();
        // All words follow from the start of the loader that was first, and none is skipped.
        assert!([DUE + 100, DUE + 200].contains(&words[0]), "{words:?}");
        assert!(words.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{words:?}");
    });
}

/// A state and its mark. What is known of the mark is not part of the state's memory and orders nothing in it. A store of the
/// standard library takes effect for all threads of a model at once, like a write to disk.
struct StateAndMark {
    state: State,
    /// Held while the mark is loaded, set or raised.
    lock: Mutex<()>,
    mark: StdAtomicU64,
    /// The highest mark of the previous generation.
    replaced: StdAtomicU64,
    drawn: StdMutex<Vec<Run>>,
}

impl StateAndMark {
    fn new(first: u64, ceiling: u64) -> Arc<StateAndMark> {
        let (mark, replaced) = (StdAtomicU64::new(ceiling), StdAtomicU64::new(0));
        let state = issuing(first, ceiling);
        Arc::new(StateAndMark { state, lock: Mutex::new(()), mark, replaced, drawn: StdMutex::default() })
    }

    fn mark(&self) -> u64 {
        self.mark.load(Ordering::SeqCst)
    }

    /// Draws below the current mark, or below the mark at the time when the draw began.
    fn draw(&self, request: Request) {
        let replaced = self.replaced.load(Ordering::SeqCst);
        if let Ok(run) = draw(&self.state, request) {
            let before = if replaced > 0 { 0 } else { self.replaced.load(Ordering::SeqCst) };
            assert!(run.last() < self.mark().max(before), "{run:?} is not below the mark {}", self.mark() - DUE);
            self.drawn.lock().unwrap().push(run);
        }
    }

    /// Raises the mark by `by` and publishes it.
    fn extend(&self, by: u64, fault: OrderingFault) {
        let generation = self.state.generation();
        let Some(last) = self.state.last() else {
            return;
        };
        let ceiling = last + 1 + by;
        if fault == OrderingFault::PublishedFirst {
            self.state.publish(generation, below(ceiling), 0);
        }
        let guard = self.lock.lock().unwrap();
        if self.state.generation() == generation {
            self.mark.fetch_max(ceiling, Ordering::SeqCst);
        }
        drop(guard);
        let generation = if fault == OrderingFault::GenerationIgnored { self.state.generation() } else { generation };
        self.state.publish(generation, below(ceiling), 0);
    }

    fn set_mark(&self, mark: u64) {
        let guard = self.lock.lock().unwrap();
        let before = self.mark();
        self.state.unload();
        self.mark.store(mark, Ordering::SeqCst);
        self.replaced.store(before, Ordering::SeqCst);
        drop(guard);
    }

    fn load(&self) {
        let guard = self.lock.lock().unwrap();
        if self.state.last().is_none() {
            self.state.load(self.state.generation(), self.mark(), CLOCK);
        }
        drop(guard);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OrderingFault {
    None,
    /// Publishes before the mark is durable.
    PublishedFirst,
    /// Publishes for the current generation, whichever it is.
    GenerationIgnored,
}

fn spawn<F: FnOnce(&StateAndMark) + 'static>(server: &Arc<StateAndMark>, body: F) -> thread::JoinHandle<()> {
    let server = server.clone();
    thread::spawn(move || body(&server))
}

/// Two threads draw while a third extends.
fn extending(fault: OrderingFault) {
    explore(Some(3), move || {
        let server = StateAndMark::new(DUE, DUE + 2);
        let drawing = [[ONE, THREE], [THREE, ONE]].map(|requests| {
            spawn(&server, move |server| requests.into_iter().for_each(|request| server.draw(request)))
        });
        server.extend(3, fault);
        drawing.into_iter().for_each(|thread| thread.join().unwrap());
        server.draw(BLOCK);
        let mut drawn = server.drawn.lock().unwrap().clone();
        drawn.sort_by_key(|run| run.first);
        assert!(increasing(&drawn), "a word was drawn twice: {drawn:?}");
    });
}

/// One thread draws and one extends while the mark is lowered, loaded again, and extended again.
fn repairing(fault: OrderingFault) {
    explore(Some(2), move || {
        let server = StateAndMark::new(DUE + 1_000, DUE + 1_002);
        let threads = [
            spawn(&server, move |server| server.extend(10, fault)),
            spawn(&server, |server| {
                server.draw(THREE);
                server.draw(THREE);
            }),
        ];
        server.set_mark(DUE + 100);
        server.load();
        server.extend(3, OrderingFault::None);
        server.draw(THREE);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        server.draw(THREE);
        let drawn = server.drawn.lock().unwrap();
        assert!(drawn.iter().any(|run| run.first < DUE + 1_000), "nothing was repaired: {drawn:?}");
    });
}

#[test]
fn nothing_is_drawn_at_or_above_what_is_durable_while_another_extends() {
    extending(OrderingFault::None);
}

#[test]
fn nothing_is_drawn_above_a_mark_that_was_lowered_by_who_was_late() {
    repairing(OrderingFault::None);
}

#[test]
fn publishing_before_the_mark_is_durable_is_caught() {
    caught("is not below the mark", || extending(OrderingFault::PublishedFirst));
}

#[test]
fn publishing_for_another_generation_is_caught() {
    caught("is not below the mark", || repairing(OrderingFault::GenerationIgnored));
}

#[test]
fn a_step_of_the_clock_is_reported_once_by_those_who_compare_meanwhile() {
    const BACK: Nanos = 10_000 * MS;
    let rules = ClockRules { slack: 100 * MS, max_jump: 3_600_000 * MS, on_regression: OnRegression::Continue };
    // The readings differ by some nanoseconds, as real ones do.
    let at = |wall| Reading { monotonic: NOW, boot: NOW, wall, apart: 0 };
    explore(Some(3), move || {
        // An atomic of loom, so that loom tries the step at every point at which it makes a difference.
        let shared = Arc::new((State::new(), AtomicU64::new(NOW)));
        shared.0.load(shared.0.generation(), DUE, GeneratorClock::start(at(NOW), 0));
        let comparing = |jitter| {
            let shared = shared.clone();
            move || {
                let (state, wall) = &*shared;
                state.discipline(|| at(wall.fetch_add(0, Ordering::Relaxed) + jitter), NOW, &rules).event
            }
        };
        let threads = [1, 2].map(|jitter| thread::spawn(comparing(jitter)));
        shared.1.fetch_sub(BACK, Ordering::Relaxed);
        let events = threads.map(|thread| thread.join().unwrap());
        let reported: Vec<ClockEvent> = events.into_iter().chain([comparing(3)()]).flatten().collect();
        let regression = matches!(reported[..], [ClockEvent::Regression(by)] if by.abs_diff(BACK) < 9);
        assert!(regression && shared.0.clock_regressions().count == 1, "{reported:?}");
    });
}

/// A pending mark in which all numbers derive from one.
fn pending(state: &State, number: u64) -> Pending {
    let reservation = Reservation { ceiling: DUE + number, renew: number };
    Pending { generation: state.generation(), reservation, time: number, written: number, position: number }
}

#[test]
fn a_pending_mark_is_read_whole_while_others_note_and_forget() {
    // A mutex of the standard library, to collect results over all interleavings.
    static FOUND: StdMutex<Vec<u64>> = StdMutex::new(Vec::new());
    explore(Some(3), || {
        let state = Arc::new(issuing(DUE, DUE + 2));
        state.note(&pending(&state, 1));
        let changing = {
            let state = state.clone();
            thread::spawn(move || {
                state.settle(&pending(&state, 1), None);
                state.note(&pending(&state, 2));
            })
        };
        if let Some(found) = state.pending() {
            assert_eq!(found, pending(&state, found.position));
            FOUND.lock().unwrap().push(found.position);
        }
        changing.join().unwrap();
        assert_eq!(state.pending(), Some(pending(&state, 2)));
    });
    assert!(!FOUND.lock().unwrap().is_empty(), "nothing was ever read");
}
