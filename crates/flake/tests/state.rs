//! The shared state used by one thread, and by several real threads. `loom.rs` explores the orders that these rarely meet.
#![cfg(not(loom))]

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use flake::{
    ClockEvent, ClockRules, Drawn, Epoch, GeneratorClock, IdFormat, Incidents, Layout, Limits, MAX_WINDOW, MIN_WINDOW,
    Nanos, Obstacle, OnRegression, Pace, Reading, Request, Reservation, Run, State,
};

const MS: Nanos = 1_000_000;
const START: Nanos = 1_700_000_000_000 * MS;
const PACE: Pace = Pace { max_ahead: 100 * MS, random_start: false, overdue: false, waited: 0 };
const RULES: ClockRules =
    ClockRules { slack: 100 * MS, max_jump: 3_600_000 * MS, on_regression: OnRegression::Continue };

/// The time of the monotonic clock at [`START`].
const UP: Nanos = 5_000 * MS;

/// The clocks `since` after [`START`], if the wall clock was set by `step` meanwhile.
fn reading(since: Nanos, step: i64) -> Reading {
    let monotonic = UP + since;
    Reading { monotonic, boot: monotonic, wall: (START + since).strict_add_signed(step), apart: 0 }
}

fn limits() -> Limits {
    Limits::of(&IdFormat { layout: Layout::TWITTER, epoch: Epoch::TWITTER })
}

/// The first word of the tick at [`START`].
fn due() -> u64 {
    (START / MS - Epoch::TWITTER.unix_ms() as u64) * 4_096
}

/// A reservation that is never renewed.
fn below(ceiling: u64) -> Reservation {
    Reservation { ceiling, renew: ceiling }
}

/// A state that issues the words from `first` to the one below `ceiling`.
fn issuing(first: u64, ceiling: u64) -> State {
    let state = State::new();
    load(&state, first);
    assert!(state.publish(state.generation(), below(ceiling), 0));
    state
}

fn load(state: &State, first: u64) {
    state.load(state.generation(), first, GeneratorClock::start(reading(0, 0), 0));
}

fn try_draw(state: &State, request: Request) -> Result<Drawn, Obstacle> {
    state.draw(&limits(), PACE, request, |offset| UP.wrapping_add(offset))
}

fn draw(state: &State, request: Request) -> Result<Run, Obstacle> {
    try_draw(state, request).map(|drawn| drawn.run)
}

/// Draws one word.
fn one(state: &State) -> Result<u64, Obstacle> {
    draw(state, Request::UpTo(1)).map(|run| run.first)
}

#[test]
fn nothing_is_issued_before_the_state_is_loaded() {
    for state in [State::new(), State::default()] {
        assert_eq!(state.last(), None);
        assert_eq!(draw(&state, Request::UpTo(1)), Err(Obstacle::NotLoaded));
        assert_eq!(draw(&state, Request::InOneTick(1)), Err(Obstacle::NotLoaded));
        // A published reservation alone makes no difference.
        assert!(state.publish(state.generation(), below(u64::MAX), 0));
        assert_eq!(draw(&state, Request::UpTo(1)), Err(Obstacle::NotLoaded));
    }
}

#[test]
fn a_loaded_state_issues_nothing_until_a_reservation_is_published() {
    let state = State::new();
    load(&state, due() + 10);
    assert_eq!(state.last(), Some(due() + 9));
    assert_eq!(draw(&state, Request::UpTo(5)), Err(Obstacle::NotReserved(due() + 11)));
    assert_eq!(draw(&state, Request::InOneTick(5)), Err(Obstacle::NotReserved(due() + 15)));
    assert!(state.publish(state.generation(), below(due() + 11), 0));
    assert_eq!(draw(&state, Request::UpTo(5)), Ok(Run { first: due() + 10, count: 1 }));
    assert_eq!(state.last(), Some(due() + 10));
}

#[test]
fn publishing_raises_the_ceiling_and_never_lowers_it() {
    let state = issuing(due(), due() + 4);
    for lower in [due() + 4, 0, due() + 1] {
        assert!(state.publish(state.generation(), below(lower), 0));
    }
    assert_eq!(draw(&state, Request::UpTo(3)), Ok(Run { first: due(), count: 3 }));
    assert!(state.publish(state.generation(), below(due() + 6), 0));
    assert_eq!(draw(&state, Request::UpTo(9)), Ok(Run { first: due() + 3, count: 3 }));
    assert_eq!(one(&state), Err(Obstacle::NotReserved(due() + 7)));
}

#[test]
fn a_second_load_changes_nothing() {
    let state = issuing(due() + 10, due() + 20);
    assert_eq!(one(&state), Ok(due() + 10));
    let clock = state.clock();
    for first in [0, due(), due() + 100] {
        state.load(
            state.generation(),
            first,
            GeneratorClock { offset: 1, reference: 2, seen: 3, hold_until: 4, compared_at: 5, apart: 6 },
        );
        assert_eq!((state.last(), state.clock()), (Some(due() + 10), clock));
    }
    assert_eq!(draw(&state, Request::UpTo(99)), Ok(Run { first: due() + 11, count: 9 }));
}

#[test]
fn loading_sets_every_number_of_the_clock_and_words_are_drawn_by_its_offset() {
    let state = State::new();
    let clock = GeneratorClock { offset: START - UP, reference: 2, seen: 3, hold_until: 4, compared_at: 5, apart: 6 };
    state.load(state.generation(), 1, clock);
    assert_eq!(state.clock(), clock);
    assert!(state.publish(state.generation(), below(u64::MAX), 0));
    assert_eq!(one(&state), Ok(due()));
}

#[test]
fn loading_at_zero_begins_at_the_first_word_there_is() {
    let state = issuing(0, u64::MAX);
    let run = state.draw(&limits(), PACE, Request::UpTo(1), |_| Epoch::TWITTER.nanos()).unwrap().run;
    assert!(run.first <= 1, "{run:?}");
}

#[test]
fn however_often_it_was_unloaded_a_state_at_the_first_words_issues_nothing_unpublished() {
    // A generation stands in for its ceiling. Here the words are as small as the generations.
    let state = State::new();
    for _ in 0..100 {
        load(&state, 0);
        let found = state.draw(&limits(), PACE, Request::UpTo(1), |_| Epoch::TWITTER.nanos());
        assert!(matches!(found, Err(Obstacle::NotReserved(_))), "{found:?}");
        state.unload();
    }
}

#[test]
fn an_unloaded_state_issues_nothing_until_it_is_loaded_and_published_for_the_new_generation() {
    let state = issuing(due() + 1_000, due() + 2_000);
    assert_eq!(one(&state), Ok(due() + 1_000));
    let earlier = state.generation();
    let late = |state: &State| assert!(!state.publish(earlier, below(due() + 3_000), 0));
    state.unload();
    assert_ne!(state.generation(), earlier);
    assert_eq!((state.last(), one(&state)), (None, Err(Obstacle::NotLoaded)));
    late(&state);
    // The mark is lower than before, as after a repair.
    load(&state, due() + 10);
    late(&state);
    assert_eq!(one(&state), Err(Obstacle::NotReserved(due() + 11)));
    assert!(state.publish(state.generation(), below(due() + 12), 0));
    late(&state);
    // The publication is refused even if the ceiling is already high enough, because its caller has not made that ceiling durable.
    assert!(!state.publish(earlier, below(due()), 0));
    assert_eq!(draw(&state, Request::UpTo(9)), Ok(Run { first: due() + 10, count: 2 }));
}

#[test]
fn one_claim_holds_until_it_is_released_or_has_expired() {
    let state = State::new();
    let first = state.claim(UP, false).expect("nobody has it");
    assert!(state.claim(UP, false).is_none());
    assert!(state.claim(UP + 100 * MS - 1, false).is_none());
    let second = state.claim(UP + 100 * MS, false).expect("the first has expired");
    // The session whose claim has expired takes nothing from the next one.
    state.release(&first);
    assert!(state.claim(UP + 150 * MS, false).is_none());
    state.release(&second);
    assert!(state.claim(UP + 150 * MS, false).is_some());
    state.unload();
    assert!(state.claim(UP + 150 * MS, false).is_some(), "a claim of an earlier generation is over");
}

#[test]
fn a_draw_asks_for_renewal_from_the_word_on_that_the_reservation_names() {
    let state = State::new();
    load(&state, due());
    assert!(state.publish(state.generation(), Reservation { ceiling: due() + 20, renew: due() + 10 }, 0));
    let renew = |count| try_draw(&state, Request::UpTo(count)).unwrap().renew;
    assert_eq!([renew(9), renew(1), renew(1), renew(1)], [false, false, true, true]);
    assert!(state.publish(state.generation(), Reservation { ceiling: due() + 40, renew: due() + 30 }, 0));
    // Words 12 to 28, 29 and 30.
    assert_eq!([renew(17), renew(1), renew(1)], [false, false, true]);
}

#[test]
fn windows_start_short_grow_while_quiet_and_shrink_under_load() {
    let state = State::new();
    load(&state, due());
    let mut now = START;
    let mut extend = |quiet: bool, took: Nanos| {
        let reservation = state.next_reservation(&limits(), now, due());
        let window = limits().time(reservation.ceiling) - limits().time(limits().word_at(now).unwrap());
        assert!(state.publish(state.generation(), reservation, took));
        // The next extension comes as soon as half is used, or after a long time.
        now = limits().time(reservation.renew) + if quiet { MAX_WINDOW } else { MS };
        window
    };
    assert_eq!(extend(true, 0), MIN_WINDOW);
    let quiet: Vec<Nanos> = (0..5).map(|number| extend(number < 4, 0)).collect();
    assert_eq!(quiet, [2, 4, 8, 10, 10].map(|seconds| seconds * 1_000 * MS));
    let loaded: Vec<Nanos> = (0..5).map(|_| extend(false, MS)).collect();
    assert_eq!(loaded, [5_000, 2_500, 1_250, 1_000, 1_000].map(|ms| ms * MS));
    // An extension that took long makes the next window long.
    extend(false, 600 * MS);
    assert_eq!(extend(true, 0), 2_400 * MS);
    // A new generation starts with the shortest window.
    state.unload();
    load(&state, due());
    let fresh = state.next_reservation(&limits(), START, due());
    assert_eq!(fresh.ceiling, due() + 1_000 * 4_096);
}

#[test]
fn an_event_is_reported_and_counted_once_among_those_who_compare_at_the_same_time() {
    let one = |size, at| Incidents { count: 1, size, at };
    for (step, event) in [
        (-7_000 * MS as i64, ClockEvent::Regression(7_000 * MS)),
        (7_000 * MS as i64, ClockEvent::Step(7_000 * MS)),
        (7_200_000 * MS as i64, ClockEvent::Jump(7_200_000 * MS)),
    ] {
        let state = issuing(due(), due() + 10);
        let mut inner = None;
        // One thread reads the state, then another compares, then the first reads the clock.
        let read = || {
            inner = state.discipline(|| reading(10, step), START, &RULES).event;
            reading(12, step + 1)
        };
        let outer = state.discipline(read, START, &RULES).event;
        assert_eq!((inner, outer), (Some(event), None));
        assert_eq!(state.discipline(|| reading(20, step), START, &RULES).event, None);
        let shown = reading(10, step).wall;
        let (regressions, jumps) = match event {
            ClockEvent::Regression(by) => (one(by, shown), Incidents::default()),
            ClockEvent::Jump(by) => (Incidents::default(), one(by, shown)),
            _ => Default::default(),
        };
        assert_eq!((state.clock_regressions(), state.clock_jumps()), (regressions, jumps));
        state.forget_incidents();
        assert_eq!((state.clock_regressions(), state.clock_jumps()), Default::default());
    }
}

#[test]
fn the_last_word_counts_as_issued_only_when_it_was_since_the_load() {
    let state = issuing(due(), due() + 10);
    assert_eq!((state.last(), state.last_issued()), (Some(due() - 1), None));
    assert_eq!(one(&state), Ok(due()));
    assert_eq!(state.last_issued(), Some(due()));
    state.unload();
    assert_eq!(state.last_issued(), None);
    load(&state, due() + 100);
    assert_eq!((state.last(), state.last_issued()), (Some(due() + 99), None));
}

#[test]
fn generator_time_moves_once_for_those_who_compare_at_the_same_time() {
    // Forward, by a step; backward, by a tenth of the time that has passed.
    for (lead, step, expected) in [(0, 7_000 * MS as i64, 7_000 * MS as i64), (9_000 * MS, 1, -100 * MS as i64)] {
        let state = State::new();
        state.load(state.generation(), due(), GeneratorClock::start(reading(0, 0), START + lead));
        let before = state.clock().offset;
        let mut inner = None;
        let read = || {
            inner = Some(state.discipline(|| reading(1_000 * MS, step), START, &RULES));
            reading(1_000 * MS, step + 1)
        };
        state.discipline(read, START, &RULES);
        assert_eq!(state.clock().offset.wrapping_sub(before) as i64, expected);
        assert_eq!(inner.unwrap().clock, state.clock(), "who was first");
    }
}

#[test]
fn time_that_a_lead_was_reduced_for_is_not_counted_again_for_who_compared_late() {
    let state = State::new();
    state.load(state.generation(), due(), GeneratorClock::start(reading(0, 0), START + 9_000 * MS));
    let before = state.clock().offset;
    // The reading is from the first second. By the time the comparison is done, the next second is counted too.
    let read = || {
        state.discipline(|| reading(2_000 * MS, 1), START, &RULES);
        reading(1_000 * MS, 2)
    };
    state.discipline(read, START, &RULES);
    state.discipline(|| reading(3_000 * MS, 3), START, &RULES);
    let bled = before.wrapping_sub(state.clock().offset);
    assert!(bled <= 300 * MS, "{bled} ns in 3 s");
}

#[test]
fn an_accepted_clock_is_followed_at_once_and_is_no_event() {
    let state = issuing(due(), due() + 10);
    let jump = 7_200_000 * MS;
    let far = |since| reading(since, jump as i64);
    assert_eq!(state.discipline(|| far(10), START, &RULES).event, Some(ClockEvent::Jump(jump)));
    assert_eq!(state.clock().time(UP + 10), START + 10, "not followed");
    assert_eq!(state.accept_clock(|| far(20)), Some(jump));
    assert_eq!(state.clock().time(UP + 20), START + 20 + jump);
    let after = state.discipline(|| far(30), START, &RULES);
    assert_eq!((after.event, after.behind, after.lead), (None, None, 0));
}

#[test]
fn accepting_a_clock_that_was_set_back_ends_the_hold_and_keeps_the_lead() {
    let state = issuing(due(), due() + 10);
    let rules = ClockRules { on_regression: OnRegression::Hold, ..RULES };
    let back = |since| reading(since, -7_200_000 * MS as i64);
    // Generator time stays up because an ID leads.
    let held = state.discipline(|| back(10), START, &rules);
    assert_eq!(held.behind, Some(7_200_000 * MS));
    assert_eq!(state.accept_clock(|| back(20)), Some(0));
    let after = state.discipline(|| back(30), START, &rules);
    assert_eq!((after.event, after.behind), (None, None));
    assert!(state.clock().time(UP + 30) >= START);
}

#[test]
fn threads_draw_distinct_words_and_each_sees_them_increase() {
    const THREADS: usize = 4;
    const DRAWS: u64 = 50_000;
    let state = issuing(1, u64::MAX);
    // All threads share one clock, and each advances it. A thread that waits advances it further.
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
            match state.draw(&limits(), PACE, request(runs.len() as u64), |_| clock.fetch_add(50, Ordering::Relaxed)) {
                Ok(drawn) => runs.push(drawn.run),
                Err(Obstacle::Throttled(wait)) => {
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
