//! Compares `step()` with an oracle that searches a list of all words one at a time, and tests the spread of random starts.

mod common;

use std::time::Duration;

use common::{NO_CEILING, Shape, epochs, forall, nanos, ticks};
use flake::{Epoch, IdFormat, Layout, Limits, Nanos, Node, Obstacle, Pace, Request, Run, Tick, step};
use proptest::prelude::*;

/// A layout so small that its words can be listed.
struct Small {
    limits: Limits,
    words: Vec<Word>,
    capacity: u64,
    tick: Nanos,
    epoch: Nanos,
}

/// The index of a word in the list is the word. The list is in the order of tick and sequence.
struct Word {
    tick: u64,
    sequence: u64,
    begins: Nanos,
    ends: Nanos,
}

/// One call of `step()`.
#[derive(Clone, Copy, Debug)]
struct StepCall {
    last: u64,
    now: Nanos,
    ceiling: u64,
    max_ahead: Nanos,
    request: Request,
}

impl Small {
    fn new(timestamp: u32, sequence: u32, tick: Tick, epoch: Epoch) -> Small {
        let shape = Shape { timestamp, datacenter: None, worker: 5, sequence, tick, sequence_lowest: true };
        let (tick, capacity) = (nanos(tick), shape.capacity());
        let epoch_nanos = epoch.unix_ms() as u64 * 1_000_000;
        let mut words = Vec::new();
        for number in 0..shape.words() / capacity {
            for sequence in 0..capacity {
                let begins = epoch_nanos + number * tick;
                words.push(Word { tick: number, sequence, begins, ends: begins + tick });
            }
        }
        let limits = Limits::of(&IdFormat { layout: shape.layout(), epoch });
        Small { limits, words, capacity, tick, epoch: epoch_nanos }
    }

    /// Clock positions around every tick's boundaries, from before the epoch to after the end.
    fn clocks(&self) -> Vec<Nanos> {
        let ticks = self.words.len() as u64 / self.capacity;
        let begins = (0..=ticks + 1).map(|tick| self.epoch + tick * self.tick);
        begins.flat_map(|at| [at.saturating_sub(1), at, at + 1, at + self.tick / 2]).collect()
    }

    fn requests(&self) -> impl Iterator<Item = Request> + use<> {
        let counts = 0..=2 * self.capacity;
        counts.flat_map(|count| [Request::UpTo(count), Request::InOneTick(count)])
    }

    /// The answer of the oracle. A wait is the shortest one that reduces the lead to its limit.
    fn expected(&self, call: StepCall) -> Result<Run, Obstacle> {
        let StepCall { last, now, ceiling, max_ahead, request } = call;
        if now < self.epoch {
            return Err(Obstacle::BeforeEpoch);
        }
        let run: Vec<usize> = match request {
            Request::UpTo(count) => {
                self.usable_after(last, now).take(count.clamp(1, self.largest_grant(max_ahead)) as usize).collect()
            }
            Request::InOneTick(count) => {
                let count = count.clamp(1, self.largest_grant(max_ahead)) as usize;
                let starting_at = |start: usize| (start..self.words.len()).take(count).collect::<Vec<_>>();
                let fits = |run: &Vec<usize>| {
                    run.len() == count && run.iter().all(|&word| self.words[word].tick == self.words[run[0]].tick)
                };
                self.usable_after(last, now).map(starting_at).find(fits).unwrap_or_default()
            }
        };
        let Some(&first) = run.first() else { return Err(Obstacle::Exhausted) };
        let durable: Vec<usize> = run.iter().copied().filter(|&word| (word as u64) < ceiling).collect();
        match request {
            Request::UpTo(_) if durable.is_empty() => return Err(Obstacle::NotReserved(first as u64 + 1)),
            Request::InOneTick(_) if durable.len() < run.len() => {
                return Err(Obstacle::NotReserved(run[run.len() - 1] as u64 + 1));
            }
            _ => {}
        }
        let word = &self.words[first];
        let (Request::UpTo(asked) | Request::InOneTick(asked)) = request;
        let (due, limit) = match asked {
            0 | 1 => (word.begins, max_ahead),
            // No word of the clock's own tick is issued yet.
            _ if self.words[last as usize].ends <= now => (now, 0),
            _ => (word.begins + word.sequence * self.tick / self.capacity, max_ahead / 2),
        };
        match due.saturating_sub(now) {
            lead if lead > limit => Err(Obstacle::Throttled(Duration::from_nanos(lead - limit))),
            _ => Ok(Run { first: first as u64, count: durable.len() as u64 }),
        }
    }

    /// The words of one tick, or those of half of `max_ahead` if they are fewer, but at least one.
    fn largest_grant(&self, max_ahead: Nanos) -> u64 {
        (max_ahead / 2 * self.capacity / self.tick).clamp(1, self.capacity)
    }

    /// The words after the last one issued whose ticks are not over, in order.
    fn usable_after(&self, last: u64, now: Nanos) -> impl Iterator<Item = usize> {
        (last as usize + 1..self.words.len()).filter(move |&word| self.words[word].ends > now)
    }

    fn step(&self, call: StepCall, random_start: bool) -> Result<Run, Obstacle> {
        let pace = Pace { max_ahead: call.max_ahead, random_start, overdue: false, waited: 0 };
        step(call.last, call.now, call.ceiling, &self.limits, pace, call.request)
    }

    fn check(&self, call: StepCall) {
        let (found, expected) = (self.step(call, false), self.expected(call));
        let as_expected = match (found, expected) {
            // The wait is longer by an eighth to a half of the run-ahead, so that it is worth its wake-up.
            (Err(Obstacle::Throttled(wait)), Err(Obstacle::Throttled(needed))) => {
                let with = |part| needed + Duration::from_nanos(call.max_ahead / part);
                (with(8)..=with(2)).contains(&wait)
            }
            _ => found == expected,
        };
        assert!(as_expected, "{found:?} instead of {expected:?}: {call:?}, epoch {}", self.epoch);
        self.check_random_start(call, found);
    }

    /// A random start moves only the first word of the clock's own tick, and only inside it.
    fn check_random_start(&self, call: StepCall, zero: Result<Run, Obstacle>) {
        let found = self.step(call, true);
        let next = self.usable_after(call.last, call.now).next().map(|word| &self.words[word]);
        let fresh = next.filter(|word| word.begins <= call.now && word.sequence == 0);
        let (Some(fresh), Request::UpTo(_)) = (fresh, call.request) else {
            assert_eq!(found, zero, "a start moved that is not a new tick's: {call:?}, epoch {}", self.epoch);
            return;
        };
        let first = match found {
            Ok(run) if run.last() < call.ceiling.min(self.words.len() as u64) => run.first,
            Err(Obstacle::NotReserved(word)) if word > call.ceiling => word - 1,
            other => panic!("{other:?} in a new tick: {call:?}, epoch {}", self.epoch),
        };
        assert_eq!(self.words[first as usize].tick, fresh.tick, "left the tick: {call:?}, epoch {}", self.epoch);
    }
}

#[test]
fn every_step_below_every_ceiling_is_the_one_found_word_by_word() {
    for (timestamp, sequence) in [(3, 1), (3, 2), (2, 3), (1, 4)] {
        let small = Small::new(timestamp, sequence, Tick::Ms1, Epoch::TWITTER);
        let words = small.words.len() as u64;
        for now in small.clocks() {
            for last in 0..words {
                for ceiling in (0..=words + 1).chain([NO_CEILING]) {
                    let call = |request| StepCall { last, now, ceiling, max_ahead: 10_000_000_000, request };
                    small.requests().for_each(|request| small.check(call(request)));
                }
            }
        }
    }
}

#[test]
fn every_step_within_every_lead_is_the_one_found_word_by_word() {
    for (timestamp, sequence) in [(4, 1), (3, 2), (2, 3), (2, 4)] {
        let small = Small::new(timestamp, sequence, Tick::Ms1, Epoch::TWITTER);
        for now in small.clocks() {
            for last in 0..small.words.len() as u64 {
                for max_ahead in [0, 1, small.tick / 2, small.tick - 1, small.tick, small.tick + 1, 2 * small.tick] {
                    let call = |request| StepCall { last, now, ceiling: NO_CEILING, max_ahead, request };
                    small.requests().for_each(|request| small.check(call(request)));
                }
            }
        }
    }
}

#[test]
fn steps_of_any_tick_and_epoch_are_those_found_word_by_word() {
    let cases = (1..=3u32, 1..=5u32, ticks(), epochs(), any::<[u64; 5]>(), any::<bool>());
    forall(4_000, cases, |(timestamp, sequence, tick, epoch, raw, in_one_tick)| {
        let small = Small::new(timestamp, sequence, tick, epoch);
        let words = small.words.len() as u64;
        let ticks = words / small.capacity;
        let now = (small.epoch + raw[0] % ((ticks + 2) * small.tick)).saturating_sub(small.tick / 4);
        let count = raw[1] % (2 * small.capacity + 1);
        let request = if in_one_tick { Request::InOneTick(count) } else { Request::UpTo(count) };
        let (last, ceiling, max_ahead) = (raw[2] % words, raw[3] % (words + 2), raw[4] % (ticks * small.tick));
        small.check(StepCall { last, now, ceiling, max_ahead, request });
        Ok(())
    });
}

/// The IDs of a quiet table: one ID per tick, by a clock that moves by 1 to 5 ms, in steps of `grain`.
fn quiet_table(random_start: bool, grain: Nanos) -> Vec<i64> {
    let format = IdFormat { layout: Layout::TWITTER, epoch: Epoch::TWITTER };
    let limits = Limits::of(&format);
    let stamp = format.layout.stamp(Node::default()).unwrap();
    let pace = Pace { max_ahead: 100_000_000, random_start, overdue: false, waited: 0 };
    let (mut now, mut last, mut random) = (1_700_000_000_000_000_000, 0, 88_172_645_463_325_252u64);
    let draw = |_| {
        // Xorshift (Marsaglia 2003) is of another family than the hash under test.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        now += (1_000_000 + random % 4_000_001).next_multiple_of(grain);
        let Ok(run) = step(last, now, NO_CEILING, &limits, pace, Request::UpTo(1)) else {
            panic!("a quiet table never waits");
        };
        assert_eq!(run.first / 4096, (now - Epoch::TWITTER.nanos()) / 1_000_000, "the start left its tick");
        last = run.first;
        stamp.id(run.first)
    };
    (0..100_000).map(draw).collect()
}

/// Are the IDs spread evenly over `n` shards? A chi-square test, at a level that random IDs fail once in a million tests.
fn level(ids: &[i64], n: usize) -> bool {
    let mut shards = vec![0u64; n];
    ids.iter().for_each(|id| shards[*id as usize % n] += 1);
    let mean = ids.len() as f64 / n as f64;
    let sum: f64 = shards.iter().map(|&count| (count as f64 - mean).powi(2) / mean).sum();
    // The quantile by Wilson and Hilferty's approximation (1931). 4.75 is the normal quantile.
    let freedom = (n - 1) as f64;
    let part = 2.0 / (9.0 * freedom);
    sum < freedom * (1.0 - part + 4.75 * part.sqrt()).powi(3)
}

#[test]
fn random_starts_spread_a_quiet_tables_ids_evenly_over_shards() {
    // Clocks tick in nanoseconds on Linux, in microseconds on other systems, and in milliseconds at worst.
    for grain in [1, 1_000, 1_000_000] {
        let ids = quiet_table(true, grain);
        // The larger counts test the spread over the whole tick.
        let skewed = (2..=256).chain([512, 1_024, 2_048, 4_096]).filter(|&n| !level(&ids, n));
        assert_eq!(skewed.collect::<Vec<_>>(), [0; 0], "grain {grain}");
    }
}

#[test]
fn zero_starts_leave_a_quiet_tables_even_shards_skewed() {
    // Shows the purpose of random starts, and is a control of the test above.
    let ids = quiet_table(false, 1);
    assert!((2..=256).step_by(2).all(|n| !level(&ids, n)));
}
