//! Runs `step()` in a loop, with a clock that stalls, jumps and goes back, and with a clock that keeps time.

mod common;

use common::{NO_CEILING, Shape, forall, formats, nanos};
use flake::{Epoch, IdFormat, Layout, Limits, Nanos, Obstacle, Pace, Request, Run, Tick, step};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

const MS: Nanos = 1_000_000;
const YEAR: Nanos = 365 * 86_400_000 * MS;
/// In the 24th century. Nanoseconds last until the 26th century; the rest is for leads.
const LAST_CLOCK: Nanos = 400 * YEAR;

/// By how much the clock moves between two steps: it stalls, or goes forward or back.
fn events() -> impl Strategy<Value = i64> {
    let amount = || prop_oneof![0..1_000i64, 0..5 * MS as i64, 0..20_000 * MS as i64, 0..40 * YEAR as i64];
    prop_oneof![Just(0), amount(), amount().prop_map(|by| -by)]
}

#[derive(Clone, Debug)]
struct ClockCase {
    shape: Shape,
    format: IdFormat,
    /// The time of the clock when the case begins.
    start: Nanos,
    /// How many words the last one is ahead of the clock's, or behind it if negative.
    ahead: i64,
    pace: Pace,
    requests: Vec<Request>,
    script: Vec<i64>,
    /// Is there a ceiling? Without one, nothing has to be extended.
    limited: bool,
    /// By how many words more than requested the ceiling rises at each extension, in turn.
    raises: Vec<u64>,
    /// How much time passes with every step, when the clock keeps time.
    passing: Nanos,
}

fn cases() -> impl Strategy<Value = ClockCase> {
    formats().prop_flat_map(|(shape, format)| {
        let (capacity, epoch) = (shape.capacity(), format.epoch.unix_ms() as u64 * MS);
        let end = u128::from(epoch) + u128::from(shape.words() / capacity) * u128::from(nanos(shape.tick));
        let end = end.min(LAST_CLOCK.into()) as u64;
        // Around the epoch, later, and at the end.
        let starts = prop_oneof![
            (0..50 * MS).prop_map(move |by| epoch + by),
            (1..50 * MS).prop_map(move |by| epoch.saturating_sub(by)),
            (0..60 * YEAR).prop_map(move |by| epoch + by),
            (0..5_000 * MS).prop_map(move |by| end.saturating_sub(by).max(epoch)),
        ];
        // Large batches, but not of so many ticks that a case takes seconds.
        let count = prop_oneof![1..10u64, 1..=capacity.min(10_000_000), 1..=(capacity * 2_000).min(10_000_000)];
        let request = (count, any::<bool>())
            .prop_map(|(count, one)| if one { Request::InOneTick(count) } else { Request::UpTo(count) });
        let ahead = prop_oneof![Just(0), -2 * capacity as i64..2 * capacity as i64, -(1 << 40)..1i64 << 40];
        let max_ahead = prop_oneof![Just(2 * MS), Just(100 * MS), 2 * MS..=10_000 * MS];
        let pace = (max_ahead, any::<bool>()).prop_map(|(max_ahead, random_start)| Pace {
            max_ahead,
            random_start,
            ..Pace::default()
        });
        let raise = prop_oneof![Just(0), 0..capacity, 0..capacity * 16];
        let passing = prop_oneof![Just(0), Just(30), 0..nanos(shape.tick) / 4];
        let lists = (prop::collection::vec(request, 1..6), prop::collection::vec(events(), 0..30));
        let ceiling = (prop::bool::weighted(0.7), prop::collection::vec(raise, 1..20));
        (starts, ahead, pace, lists, ceiling, passing).prop_map(move |(start, ahead, pace, lists, ceiling, passing)| {
            let ((requests, script), (limited, raises)) = (lists, ceiling);
            ClockCase { shape, format, start, ahead, pace, requests, script, limited, raises, passing }
        })
    })
}

/// The caller's side: state, clock, and the properties that must hold for every step.
struct StepModel {
    limits: Limits,
    pace: Pace,
    capacity: u128,
    words: u128,
    tick: Nanos,
    epoch: Nanos,
    now: Nanos,
    last: u64,
    ceiling: u64,
}

impl StepModel {
    fn new(case: &ClockCase) -> StepModel {
        let (tick, now) = (nanos(case.shape.tick), case.start.min(LAST_CLOCK));
        let epoch = case.format.epoch.unix_ms() as u64 * MS;
        let (words, capacity) = (u128::from(case.shape.words()), u128::from(case.shape.capacity()));
        // The words whose time a clock can show.
        let shown = |at: Nanos| u128::from(at.saturating_sub(epoch) / tick) * capacity;
        let last = shown(now).saturating_add_signed(case.ahead.into()).min(shown(LAST_CLOCK)).min(words - 1) as u64;
        StepModel {
            limits: Limits::of(&case.format),
            pace: case.pace,
            capacity,
            words,
            tick,
            epoch,
            now,
            last,
            ceiling: if case.limited { last + 1 } else { NO_CEILING },
        }
    }

    fn apply(&mut self, event: i64) {
        self.now = self.now.saturating_add_signed(event).min(LAST_CLOCK.max(self.now));
    }

    /// The first word that `request` can get at this time, or the word after the last one if none is left. With a random start,
    /// only its tick is relevant.
    fn due(&self, request: Request) -> u128 {
        let clock = u128::from((self.now - self.epoch) / self.tick) * self.capacity;
        let due = clock.max(u128::from(self.last) + 1);
        match request {
            Request::InOneTick(count) if due % self.capacity + self.in_one_tick(count) > self.capacity => {
                due.next_multiple_of(self.capacity)
            }
            _ => due,
        }
    }

    /// How many words a request for that many in one tick gets.
    fn in_one_tick(&self, count: u64) -> u128 {
        u128::from(count).min(self.largest_grant())
    }

    /// The words of one tick, or those of half of the run-ahead if they are fewer, but at least one.
    fn largest_grant(&self) -> u128 {
        (u128::from(self.pace.max_ahead / 2) * self.capacity / u128::from(self.tick)).clamp(1, self.capacity)
    }

    /// Takes one step, checks it, and does the work of a caller, except that it lets no time pass.
    fn step(&mut self, request: Request, raise: u64) -> Result<Result<Run, Obstacle>, TestCaseError> {
        let found = step(self.last, self.now, self.ceiling, &self.limits, self.pace, request);
        prop_assert_eq!(found == Err(Obstacle::BeforeEpoch), self.now < self.epoch);
        if found == Err(Obstacle::BeforeEpoch) {
            return Ok(found);
        }
        let due = self.due(request);
        prop_assert_eq!(found == Err(Obstacle::Exhausted), due >= self.words);
        match found {
            Ok(run) => {
                let (first, end) = (u128::from(run.first), u128::from(run.first) + u128::from(run.count));
                prop_assert!(run.first > self.last, "{:?} is not above {}", run, self.last);
                prop_assert!(run.count > 0 && end <= u128::from(self.ceiling) && end <= self.words);
                prop_assert_eq!(first / self.capacity, due / self.capacity);
                let begins = u128::from(self.epoch) + first / self.capacity * u128::from(self.tick);
                prop_assert!(begins <= u128::from(self.now) + u128::from(self.pace.max_ahead), "too far ahead");
                match request {
                    Request::UpTo(count) => {
                        // As many as the request, the largest grant, the ceiling and the last word allow.
                        let room = (u128::from(self.ceiling) - first).min(self.words - first).min(self.largest_grant());
                        prop_assert_eq!(u128::from(run.count), room.min(count.into()));
                    }
                    Request::InOneTick(count) => {
                        prop_assert_eq!(u128::from(run.count), self.in_one_tick(count));
                        prop_assert_eq!(first / self.capacity, (end - 1) / self.capacity);
                    }
                }
                self.last = run.last();
            }
            Err(Obstacle::NotReserved(word)) => {
                prop_assert!(word > self.ceiling && u128::from(word) > due && u128::from(word) <= self.words);
                // Also past the end of the layout, which a caller's window can reach.
                self.ceiling = word + raise;
            }
            Err(Obstacle::Throttled(_)) => {
                let begins = u128::from(self.epoch) + due / self.capacity * u128::from(self.tick);
                let (Request::UpTo(count) | Request::InOneTick(count)) = request;
                let limit = match count {
                    1 => begins - u128::from(self.pace.max_ahead),
                    _ => {
                        let inside = due % self.capacity * u128::from(self.tick) / self.capacity;
                        begins + inside - u128::from(self.pace.max_ahead / 2)
                    }
                };
                prop_assert!(limit > u128::from(self.now), "no reason to wait");
            }
            Err(Obstacle::Exhausted | Obstacle::BeforeEpoch) => {}
            Err(Obstacle::NotLoaded) => prop_assert!(false, "the caller's word says that the state is loaded"),
        }
        Ok(found)
    }
}

/// The kind of a step: words, and then the obstacles.
fn kind(step: Result<Run, Obstacle>) -> usize {
    match step {
        Ok(_) => 0,
        Err(Obstacle::NotReserved(_)) => 1,
        Err(Obstacle::Throttled(_)) => 2,
        Err(Obstacle::Exhausted) => 3,
        Err(Obstacle::BeforeEpoch) => 4,
        Err(Obstacle::NotLoaded) => unreachable!("refused above"),
    }
}

/// Runs a case, and counts its steps of each kind.
fn run(case: &ClockCase, met: &mut [u32; 5]) -> Result<(), TestCaseError> {
    let mut model = StepModel::new(case);
    let mut script = case.script.iter();
    let mut raises = case.raises.iter().cycle();
    for &request in &case.requests {
        let mut left = match request {
            Request::UpTo(count) => count,
            Request::InOneTick(_) => 1,
        };
        // Each run is the largest grant, unless the ceiling cut it short.
        let runs = u128::from(left).div_ceil(model.largest_grant()) as u64;
        let (mut issues, mut extends, mut idle, mut waited) = (0, 0, 0, false);
        while left > 0 {
            let request = match request {
                Request::UpTo(_) => Request::UpTo(left),
                one @ Request::InOneTick(_) => one,
            };
            // At first word by word, later in larger steps, so that the case ends soon.
            let mut raise = raises.next().unwrap() + if extends < 50 { 0 } else { left / 50 };
            // A random start is drawn again at each step. If the clock moves, only an extension by more than a tick is certain to
            // be enough.
            if case.pace.random_start && case.passing > 0 {
                raise += 2 * case.shape.capacity();
            }
            let found = model.step(request, raise)?;
            met[kind(found)] += 1;
            // The clock keeps time after the end of the script. From then on, steps are counted.
            let honest = script.as_slice().is_empty();
            idle += u32::from(honest);
            match found {
                Ok(run) => {
                    left = if matches!(request, Request::UpTo(_)) { left - run.count } else { 0 };
                    (issues, idle) = (issues + u64::from(honest), 0);
                }
                Err(Obstacle::NotReserved(_)) => extends += 1,
                Err(Obstacle::Throttled(wait)) if honest => {
                    prop_assert!(!waited, "waited in vain");
                    model.now += wait.as_nanos() as u64;
                }
                Err(Obstacle::Exhausted) => return Ok(()),
                Err(Obstacle::BeforeEpoch) if honest => model.now = model.epoch,
                Err(Obstacle::Throttled(_) | Obstacle::BeforeEpoch | Obstacle::NotLoaded) => {}
            }
            waited = honest && matches!(found, Err(Obstacle::Throttled(_)));
            match script.next() {
                Some(&event) => model.apply(event),
                None => model.now += case.passing,
            }
            // The longest way to words has four steps: not before the epoch, extend, extend again because the tick has changed,
            // wait.
            prop_assert!(idle <= 4, "{} steps for nothing", idle);
            prop_assert!(issues <= runs + extends, "{} runs for {:?}", issues, request);
        }
    }
    Ok(())
}

#[test]
fn whatever_the_clock_does_words_increase_and_every_request_ends() {
    let met = std::cell::RefCell::new([0; 5]);
    forall(2_000, cases(), |case| run(&case, &mut met.borrow_mut()));
    // A control of the cases: each kind of step must occur.
    let met = met.into_inner();
    assert!(met.into_iter().all(|times| times > 100), "{met:?}");
}

/// Draws `count` words, at most `most` at a time, and waits when told to. Returns how long it took and how often it waited.
/// Steps take no time.
fn draw(format: IdFormat, pace: Pace, count: u64, most: u64) -> (Nanos, u64) {
    let limits = Limits::of(&format);
    let start = 1_700_000_000_000 * MS;
    let (mut now, mut last, mut left, mut waits) = (start, 0, count, 0);
    let mut waited = false;
    while left > 0 {
        match step(last, now, NO_CEILING, &limits, pace, Request::UpTo(left.min(most))) {
            Ok(run) => {
                assert!(run.first > last);
                (last, left, waited) = (run.last(), left - run.count, false);
            }
            Err(Obstacle::Throttled(wait)) => {
                assert!(!waited, "waited in vain");
                (now, waits, waited) = (now + wait.as_nanos() as u64, waits + 1, true);
            }
            other => panic!("{other:?}"),
        }
    }
    (now - start, waits)
}

#[test]
fn ten_million_words_take_the_time_that_the_layout_needs_for_them() {
    let layout = |timestamp, sequence, tick| Layout::of(timestamp, None, 10, sequence, tick).unwrap();
    let layouts = [
        (Layout::TWITTER, 1, 4_096),
        (layout(41, 1, Tick::Ms1), 1, 2),
        (layout(37, 4, Tick::Ms10), 10, 16),
        (layout(31, 13, Tick::S1), 1_000, 8_192),
        (layout(22, 31, Tick::Ms1), 1, 1 << 31),
    ];
    for (layout, tick_ms, capacity) in layouts {
        for max_ahead in [2 * MS, 100 * MS, 10_000 * MS] {
            let count = 10_000_000;
            // The wide sequence leaves so few bits to the timestamp that the time of the layout runs out after an hour.
            let epoch = if capacity == 1 << 31 { 1_700_000_000_000 } else { Epoch::TWITTER.unix_ms() };
            let format = IdFormat { layout, epoch: Epoch::from_unix_ms(epoch).unwrap() };
            let (took, waits) = draw(format, Pace { max_ahead, ..Pace::default() }, count, u64::MAX);
            let needed = count * tick_ms * MS / capacity;
            // At the end, the lead is at most the one allowed. The start is at the beginning of a tick or inside one.
            let fastest = needed.saturating_sub(max_ahead + 2 * tick_ms * MS);
            let slowest = needed + tick_ms * MS;
            assert!((fastest..=slowest).contains(&took), "{layout}, {max_ahead} ahead: {took} ns, {waits} waits");
            // Each sleep is long enough to be worth its wake-up.
            assert!(waits <= took / (max_ahead / 8) + 1, "{layout}, {max_ahead} ahead: {waits} waits in {took} ns");
        }
    }
}

#[test]
fn a_burst_within_the_lead_never_waits() {
    let format = IdFormat { layout: Layout::TWITTER, epoch: Epoch::TWITTER };
    let pace = Pace { max_ahead: 100 * MS, random_start: false, overdue: false, waited: 0 };
    // The clock's own tick and those of the next 100 ms. The last one begins exactly 100 ms from now.
    assert_eq!(draw(format, pace, 101 * 4_096, 1), (0, 0));
    let (took, waits) = draw(format, pace, 101 * 4_096 + 1, 1);
    assert_eq!(waits, 1);
    assert!((13 * MS..=50 * MS).contains(&took), "{took}");
    // A request for many words gets half of the run-ahead.
    assert_eq!(draw(format, pace, 51 * 4_096, u64::MAX), (0, 0));
    let (took, waits) = draw(format, pace, 51 * 4_096 + 2, u64::MAX);
    assert_eq!(waits, 1);
    assert!((13 * MS..=50 * MS).contains(&took), "{took}");
}

#[test]
fn throttled_sessions_do_not_all_wake_at_once() {
    let format = IdFormat { layout: Layout::TWITTER, epoch: Epoch::TWITTER };
    let limits = Limits::of(&format);
    let pace = Pace { max_ahead: 100 * MS, random_start: false, overdue: false, waited: 0 };
    // Sixty-four sessions reach the limit within a few microseconds.
    let start = 1_700_000_000_000 * MS;
    let last = ((start / MS - 1_288_834_974_657) + 101) * 4_096;
    let wakes = (0..64).map(|session| start + session * 100).map(|now| {
        match step(last, now, NO_CEILING, &limits, pace, Request::UpTo(1)) {
            Err(Obstacle::Throttled(wait)) => now + wait.as_nanos() as u64,
            other => panic!("{other:?}"),
        }
    });
    let mut wakes: Vec<Nanos> = wakes.collect();
    wakes.sort_unstable();
    // Each wakes one to three eighths of the limit after reaching it. That span is 25 ms, and most of it must be used.
    assert!(wakes[63] - wakes[0] > 15 * MS, "{wakes:?}");
    assert!(wakes.windows(8).all(|eight| eight[7] - eight[0] > MS / 10), "{wakes:?}");
}
