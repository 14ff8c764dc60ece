//! A caller that remembers the tick of its previous word gets the same words as one that does not.
#![cfg(not(loom))]

use flake::{
    CurrentTick, Drawn, Epoch, GeneratorClock, IdFormat, Layout, Limits, Nanos, Obstacle, Pace, Reading, Request,
    Reservation, State, Undecided,
};
use proptest::prelude::*;

const MS: Nanos = 1_000_000;
const START: Nanos = 1_700_000_000_000 * MS;

/// What happens between two draws.
#[derive(Clone, Debug)]
enum Between {
    /// The clock advances.
    Advance(Nanos),
    /// The clock is set back.
    Back(Nanos),
    /// Another caller draws this many words.
    Other(u64),
    /// The reservation is extended by this many words.
    Extend(u64),
    /// The session draws many words one after another.
    Many(u16),
    /// Requests may run this far ahead of the clock from now on.
    Ahead(Nanos),
}

fn between() -> impl Strategy<Value = Between> {
    prop_oneof![
        4 => (0..3 * MS).prop_map(Between::Advance),
        1 => (0..40 * MS).prop_map(Between::Advance),
        1 => (0..3_000 * MS).prop_map(Between::Advance),
        1 => (0..30 * MS).prop_map(Between::Back),
        2 => (1..3_000_u64).prop_map(Between::Other),
        1 => (0..200_000_u64).prop_map(Between::Extend),
        2 => (1..20_u16).prop_map(Between::Many),
        1 => (1..200 * MS).prop_map(Between::Ahead),
    ]
}

/// Layouts with ticks of each length, one with a single word in a tick, one that ends soon, and one that has just begun.
fn layout() -> impl Strategy<Value = (Layout, Epoch)> {
    let layout = |text: &str| Layout::parse(text).expect("a layout");
    let before_start = |ms: i64| Epoch::from_unix_ms(START as i64 / MS as i64 - ms).expect("an epoch");
    let (ends_soon, has_begun) = (before_start((1 << 31) - 60), before_start(30));
    prop_oneof![
        Just((layout("41:10:12"), Epoch::TWITTER)),
        Just((layout("39:8s:8:8@10ms"), Epoch::TWITTER)),
        Just((layout("31:22:10@1s"), Epoch::TWITTER)),
        Just((layout("41:13:9"), Epoch::TWITTER)),
        Just((layout("31:20:12"), ends_soon)),
        Just((layout("41:10:12"), has_begun)),
    ]
}

fn state(first: u64, ceiling: u64) -> State {
    let state = State::new();
    let reading = Reading { monotonic: 0, boot: 0, wall: START, apart: 0 };
    assert!(state.load(state.generation(), first, GeneratorClock::start(reading, 0)));
    assert!(state.publish(state.generation(), Reservation { ceiling, renew: ceiling }, 0));
    state
}

/// Draws one word from the remembered tick if the clock were at `remembered`, or decides at `now`, as a session does.
fn draw(
    state: &State,
    current: &CurrentTick,
    limits: &Limits,
    pace: Pace,
    remembered: Nanos,
    now: Nanos,
) -> Result<Drawn, Obstacle> {
    if let Ok(drawn) = state.next(current, pace.max_ahead, |_| remembered) {
        return Ok(drawn);
    }
    let drawn = state.draw(limits, pace, Request::UpTo(1), |_| now);
    if let Ok(drawn) = &drawn {
        current.remember(limits, drawn.run.first, pace.max_ahead);
    }
    drawn
}

/// Draws from two equal states, with and without a remembered tick, and compares the results. `remembered` draws from a state.
fn compare(
    limits: &Limits,
    mut pace: Pace,
    steps: &[Between],
    remembered: impl Fn(&State, Pace, Nanos) -> Result<Drawn, Obstacle>,
) -> Result<(), TestCaseError> {
    let first = limits.word_at(START).expect("after the epoch");
    let mut ceiling = first + 100_000;
    let (one, two) = (state(first, ceiling), state(first, ceiling));
    let mut now = START;
    for step in steps {
        let mut times = 1;
        match *step {
            Between::Advance(time) => now += time,
            Between::Back(time) => now -= time,
            Between::Other(count) => {
                let request = Request::UpTo(count);
                let drawn = [&one, &two].map(|state| state.draw(limits, pace, request, |_| now));
                prop_assert_eq!(drawn[0], drawn[1]);
            }
            Between::Extend(words) => {
                ceiling = ceiling.max(one.last().unwrap_or(0)) + words;
                let reservation = Reservation { ceiling, renew: ceiling };
                prop_assert_eq!(
                    one.publish(one.generation(), reservation, 0),
                    two.publish(two.generation(), reservation, 0)
                );
            }
            Between::Many(count) => times = count,
            Between::Ahead(time) => pace.max_ahead = time,
        }
        for _ in 0..times {
            prop_assert_eq!(
                remembered(&one, pace, now),
                two.draw(limits, pace, Request::UpTo(1), |_| now),
                "after {:?}",
                step
            );
            now += 40;
        }
    }
    Ok(())
}

fn pace(random_start: bool) -> Pace {
    Pace { max_ahead: 100 * MS, random_start, overdue: false, waited: 0 }
}

proptest! {
    #[test]
    fn a_remembered_tick_changes_no_word(
        (layout, epoch) in layout(),
        random_start: bool,
        steps in prop::collection::vec(between(), 1..200),
    ) {
        let limits = Limits::of(&IdFormat { layout, epoch });
        let (current, pace) = (CurrentTick::new(), pace(random_start));
        compare(&limits, pace, &steps, |state, pace, now| draw(state, &current, &limits, pace, now, now))?;
    }
}

#[test]
fn a_tick_that_is_remembered_for_too_long_is_caught() {
    let limits = Limits::of(&IdFormat { layout: Layout::TWITTER, epoch: Epoch::TWITTER });
    let (current, pace) = (CurrentTick::new(), pace(false));
    // Each draw sees the clock of half a tick ago.
    let stale = |state: &State, pace: Pace, now: Nanos| draw(state, &current, &limits, pace, now - MS / 2, now);
    let steps: Vec<Between> = (0..50).map(|_| Between::Advance(MS / 3)).collect();
    assert!(compare(&limits, pace, &steps, stale).is_err());
}

#[test]
fn a_session_that_runs_as_far_ahead_as_before_a_change_is_caught() {
    let limits = Limits::of(&IdFormat { layout: Layout::TWITTER, epoch: Epoch::TWITTER });
    let (current, before) = (CurrentTick::new(), pace(false));
    let steps = [Between::Other(4096), Between::Many(10), Between::Ahead(MS / 2), Between::Many(10)];
    let with = |pace: fn(Pace, Pace) -> Pace| {
        compare(&limits, before, &steps, |state, now_pace, now| {
            draw(state, &current, &limits, pace(before, now_pace), now, now)
        })
    };
    with(|_, now| now).unwrap();
    assert!(with(|before, _| before).is_err());
}

#[test]
fn only_the_words_of_the_remembered_tick_follow() {
    let limits = Limits::of(&IdFormat { layout: Layout::TWITTER, epoch: Epoch::TWITTER });
    let first = limits.word_at(START).expect("after the epoch");
    let (state, current) = (state(first, first + 100), CurrentTick::new());
    let next_ahead = |ahead: Nanos, now: Nanos| state.next(&current, ahead, |_| now).map(|drawn| drawn.run.first);
    let next = |now: Nanos| next_ahead(100 * MS, now);
    assert_eq!(next(START), Err(Undecided::OtherTick));
    assert_eq!(draw(&state, &current, &limits, pace(false), START, START).unwrap().run.first, first);
    assert_eq!(next(START), Ok(first + 1));
    assert_eq!(next(START + MS - 1), Ok(first + 2));
    for other in [START - 100 * MS - 1, START + MS, 0, Nanos::MAX] {
        assert_eq!(next(other), Err(Undecided::OtherTick), "at {other}");
    }
    assert_eq!(next_ahead(50 * MS, START), Err(Undecided::OtherTick));
    // The clock was set back, and the word is just not too far ahead.
    assert_eq!(next(START - 100 * MS), Ok(first + 3));
    // The words from the ceiling on are not reserved.
    state.draw(&limits, pace(false), Request::UpTo(95), |_| START).unwrap();
    assert_eq!(next(START), Ok(first + 99));
    assert_eq!(next(START), Err(Undecided::OtherTick));
    // A state that is not loaded has no words.
    let empty = State::new();
    assert_eq!(empty.next(&current, 100 * MS, |_| START), Err(Undecided::OtherTick));
}
