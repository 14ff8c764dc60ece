//! Callers that request one word after the other take turns at the limit of a layout. A caller that waits gets a word after about as
//! many ticks as all callers need for one word each, even if sleeps end up to 12 ms late.

mod common;
#[path = "common/random.rs"]
mod random;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use common::{NO_CEILING, PRESETS};
use flake::{Epoch, IdFormat, Layout, Limits, Nanos, Obstacle, Pace, Request, Run, Tick, Turn, step};
use random::Random;

const MS: Nanos = 1_000_000;
const S: Nanos = 1_000 * MS;

/// How far words may be ahead of the clock. The default of `snowflake_pg.max_ahead`.
const MAX_AHEAD: Nanos = 100 * MS;

/// What callers do at the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LimitRule {
    /// What sessions do.
    Turns,
    /// A caller leaves no words to others.
    Greedy,
    /// A caller does not tell how long its request has waited either, so all requests rest for the same random times.
    Untold,
    /// As `Untold`, with a rest of 12.5 to 37.5 ms, of which nothing is left if the sleep is cut at a second.
    Cut,
}

/// How callers wake up and draw.
#[derive(Clone, Copy, Debug)]
struct Delays {
    /// How late every sleep ends at least, and at most.
    late: (Nanos, Nanos),
    /// How long a draw takes, with the way to the caller and back.
    draw: Nanos,
}

/// A machine without other work, and a machine whose processors are busy.
const MACHINES: [Delays; 3] = [
    Delays { late: (100_000, 120_000), draw: 20_000 },
    Delays { late: (100_000, 4 * MS), draw: 200_000 },
    Delays { late: (100_000, 12 * MS), draw: 1_000_000 },
];

#[derive(Clone, Copy)]
struct Caller {
    turn: Turn,
    /// Since when the request has been throttled.
    since: Option<Nanos>,
    /// How many words all callers had been granted after the last one of this caller.
    granted: u64,
}

/// What some callers got.
#[derive(Debug, Default)]
struct TurnsOutcome {
    /// The longest time that a caller waited for a word.
    longest: Nanos,
    /// How many words other callers were granted while a caller waited, at most.
    overtaken: u64,
    /// How many words all callers were granted.
    words: u64,
}

fn pace(waited: Nanos) -> Pace {
    Pace { max_ahead: MAX_AHEAD, random_start: false, overdue: false, waited }
}

fn limits(layout: Layout) -> Limits {
    Limits::of(&IdFormat { layout, epoch: Epoch::from_unix_ms(1_699_999_000_000).unwrap() })
}

/// Some callers request one word after the other for `time`, each as soon as it has the last one.
fn run(layout: Layout, callers: usize, time: Nanos, machine: Delays, rule: LimitRule) -> TurnsOutcome {
    let limits = limits(layout);
    // The first words, which are not ahead of the clock, are not counted.
    let begun = 1_700_000_000_000 * MS + 123_456;
    let (end, counted) = (begun + time, begun + 3 * turn(layout));
    let (mut random, mut last, mut outcome) = (Random(1), 0, TurnsOutcome::default());
    let mut all = vec![Caller { turn: Turn::default(), since: None, granted: 0 }; callers];
    // When each caller acts next.
    let mut queue: BinaryHeap<_> = (0..callers).map(|n| Reverse((begun + n as u64 * 7 * MS / 3, n))).collect();
    while let Some(Reverse((now, n))) = queue.pop().filter(|next| next.0.0 < end) {
        let caller = &mut all[n];
        let waited = caller.since.map_or(0, |since| (now - since).max(1));
        let told = if matches!(rule, LimitRule::Turns | LimitRule::Greedy) { pace(waited) } else { pace(0) };
        let new = caller.since.is_none();
        let max_ahead = if new && rule == LimitRule::Turns { caller.turn.ahead(&limits, told) } else { MAX_AHEAD };
        let ask = |pace| step(last, now, NO_CEILING, &limits, pace, Request::UpTo(1));
        let next = match ask(Pace { max_ahead, ..told }) {
            Ok(Run { first, .. }) => {
                last = first;
                if now > counted && waited > 0 {
                    outcome.longest = outcome.longest.max(waited);
                    outcome.overtaken = outcome.overtaken.max(outcome.words - caller.granted);
                }
                outcome.words += 1;
                (caller.since, caller.granted) = (None, outcome.words);
                now + machine.draw
            }
            Err(Obstacle::Throttled(_)) if new && caller.turn.ends(now, &limits, told) => now,
            Err(Obstacle::Throttled(wait)) => {
                caller.since.get_or_insert(now);
                let wait = match rule {
                    LimitRule::Cut => {
                        let Err(Obstacle::Throttled(limit)) = ask(Pace { overdue: true, ..told }) else {
                            unreachable!()
                        };
                        let rest = MAX_AHEAD / 8 + random.next() % (MAX_AHEAD / 4 + 1);
                        (limit.as_nanos() as Nanos + rest).min(S)
                    }
                    _ => wait.as_nanos() as Nanos,
                };
                // Like a session, a caller sleeps for whole milliseconds, and does not divide a sleep of up to two seconds.
                let pause = wait.div_ceil(MS) * MS;
                let pause = if pause > 2 * S { S } else { pause };
                let woken = now + pause + machine.late.0 + random.next() % (machine.late.1 - machine.late.0);
                caller.turn.slept(woken);
                woken
            }
            other => panic!("{other:?}"),
        };
        queue.push(Reverse((next, n)));
    }
    // A caller that is still waiting has waited, too.
    for caller in &all {
        outcome.longest = outcome.longest.max(caller.since.map_or(0, |since| end - since));
        outcome.overtaken = outcome.overtaken.max(outcome.words - caller.granted);
    }
    outcome
}

fn sparse(timestamp: u32, sequence: u32, tick: Tick) -> Layout {
    Layout::of(timestamp, None, 63 - timestamp - sequence, sequence, tick).unwrap()
}

/// Layouts whose limit callers reach, and how long a draw takes at most so that they reach it.
fn layouts() -> [(Layout, Nanos); 6] {
    let preset = |name| PRESETS.iter().find(|preset| preset.0 == name).unwrap().1.layout();
    [
        (sparse(31, 4, Tick::S1), S),
        (sparse(31, 1, Tick::S1), S),
        (sparse(37, 2, Tick::Ms10), S),
        (preset("sonyflake"), 10_000),
        (preset("uid-generator"), 30_000),
        (Layout::TWITTER, 60),
    ]
}

/// Returns the longest time that a caller may wait. Twice as many turns as all callers need for one word each, because sleeps end late,
/// and four more, because words go to callers that have not waited, too. In layouts with several ticks in a turn, callers leave nothing to
/// others, and it takes two more.
fn most(layout: Layout, callers: usize) -> Nanos {
    let turn = turn(layout);
    let ticks = turn / layout.tick().nanos();
    let share = (callers as u64).div_ceil(layout.sequence_capacity() * ticks);
    turn * (2 * share + if ticks > 1 { 6 } else { 4 })
}

/// Returns the time of one turn: a tick, or the run-ahead if it is longer.
fn turn(layout: Layout) -> Nanos {
    layout.tick().nanos().max(MAX_AHEAD)
}

#[test]
fn callers_that_wait_for_one_word_at_the_limit_take_turns() {
    for (layout, draw) in layouts() {
        let time = turn(layout) * if layout.sequence_bits() > 10 { 20 } else { 300 };
        let whole = time / layout.tick().nanos() * layout.sequence_capacity();
        for callers in [2, 3, 7, 11, 30] {
            for machine in MACHINES {
                let machine = Delays { draw: machine.draw.min(draw), ..machine };
                let found = run(layout, callers, time, machine, LimitRule::Turns);
                let what = format!("{layout}, {callers} callers, {machine:?}: {found:?}");
                assert!(found.words as f64 > whole as f64 * 0.97, "{what}: of {whole} words");
                assert!(found.longest <= most(layout, callers), "{what}");
            }
        }
    }
}

#[test]
fn seven_callers_with_sixteen_words_a_second_are_overtaken_by_few_words() {
    for machine in MACHINES {
        let found = run(sparse(31, 4, Tick::S1), 7, 300 * S, machine, LimitRule::Turns);
        // The words of two ticks.
        assert!(found.overtaken <= 32 && found.longest <= 2 * S, "{machine:?}: {found:?}");
    }
}

#[test]
fn callers_that_take_all_words_of_a_tick_are_caught() {
    let layout = sparse(31, 4, Tick::S1);
    let found = run(layout, 7, 300 * S, MACHINES[0], LimitRule::Greedy);
    assert!(found.longest > most(layout, 7) && found.overtaken > 64, "{found:?}");
}

#[test]
fn callers_that_do_not_tell_how_long_they_have_waited_are_caught() {
    let layout = sparse(31, 4, Tick::S1);
    let found = run(layout, 7, 300 * S, MACHINES[0], LimitRule::Untold);
    assert!(found.longest > 2 * most(layout, 7), "{found:?}");
}

#[test]
fn sleeps_that_are_cut_before_their_rest_let_one_caller_win_for_a_minute_and_are_caught() {
    // The order of the sleeps' ends is the same in every tick. It changes only by the time by which sleeps end late, tick by tick.
    let found = run(sparse(31, 4, Tick::S1), 7, 300 * S, MACHINES[0], LimitRule::Cut);
    assert!(found.longest > 60 * S && found.overtaken > 60 * 16, "{found:?}");
}

#[test]
fn a_caller_that_has_not_waited_for_a_turn_may_use_the_whole_run_ahead() {
    let limits = limits(sparse(31, 4, Tick::S1));
    let (pace, mut turn) = (pace(0), Turn::default());
    assert!(!turn.ends(5 * S, &limits, pace));
    assert_eq!(turn.ahead(&limits, pace), MAX_AHEAD);
    turn.slept(5 * S);
    assert!(turn.ahead(&limits, pace) < MAX_AHEAD && !turn.ends(6 * S, &limits, pace));
    assert!(turn.ends(6 * S + 1, &limits, pace));
    assert_eq!(turn, Turn::default());
    // The monotonic clock went back.
    turn.slept(5 * S);
    assert!(turn.ends(S, &limits, pace));
}

#[test]
fn in_layouts_with_short_ticks_callers_may_use_the_whole_run_ahead() {
    let mut turn = Turn::default();
    turn.slept(5 * S);
    for layout in [Layout::TWITTER, sparse(37, 2, Tick::Ms10)] {
        assert_eq!(turn.ahead(&limits(layout), pace(0)), MAX_AHEAD);
    }
}
