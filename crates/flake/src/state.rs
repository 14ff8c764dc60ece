//! The state that all callers share, and the loop that draws from it without a lock.
//!
//! # Locking contract
//!
//! No function waits. If a request cannot be granted at once, the caller gets the obstacle and acts on it.
//!
//! - While the state is loaded, `last` changes only by compare-and-swap, and only upwards. The caller that succeeds owns the words
//!   between the old value and the new one.
//! - While the state is loaded, `ceiling` only rises. Published words are below a durable mark.
//! - The callers take a lock so that [`State::unload`] and the reading of a mark for [`State::load`] exclude each other. Two
//!   loads do not exclude each other, because the processes of a parallel query share their locks.
//! - [`State::unload`] begins a new *generation*. A reservation that became durable for an earlier generation is no longer
//!   published, and a mark that was read in an earlier generation is no longer loaded.
//! - Every loaded state belongs to one *assignment* of a worker ID ([`crate::Assignment`]). A caller that has drawn words compares
//!   the assignment with the one for which it makes IDs, and drops the words if they differ.
//! - The numbers of the clock are changed together by the caller that has made the *version* odd. A comparison changes nothing if
//!   another comparison has overtaken it.
//! - The oldest mark that is written but not known to be durable is *pending*. Any caller that finds this mark durable can
//!   publish its reservation.

mod claim;

use crossbeam_utils::CachePadded;

pub use claim::Claim;

use crate::assignment::Assignment;
use crate::bulk::Bulk;
use crate::incidents::IncidentRecord;
use crate::pending::Place;
use crate::sync::{AtomicU64, Ordering};
use crate::{
    ClockEvent, ClockRules, Disciplined, Generation, GeneratorClock, Incidents, Limits, Nanos, Obstacle, Pace, Pending,
    Reading, Request, Reservation, Run, next_window, step,
};

/// This value plus the generation is the value of `last` before the state is loaded. All words are below it, so no draw can succeed
/// with it.
pub const NOT_LOADED: u64 = 1 << 63;

/// The values that every draw reads and only an extension writes.
#[derive(Default)]
struct Terms {
    ceiling: AtomicU64,
    renew: AtomicU64,
    offset: AtomicU64,
    assignment: Assignment,
}

/// The values that only extensions use.
#[derive(Default)]
struct Extension {
    generation: AtomicU64,
    began: AtomicU64,
    version: AtomicU64,
    claimed_until: AtomicU64,
    look_at: AtomicU64,
    bulk: Bulk,
    pending: Place,
    settled_written: AtomicU64,
    settled_for: AtomicU64,
    window: AtomicU64,
    took: AtomicU64,
    reference: AtomicU64,
    seen: AtomicU64,
    hold_until: AtomicU64,
    apart: AtomicU64,
    compared_at: AtomicU64,
    regressions: IncidentRecord,
    jumps: IncidentRecord,
}

/// The generator's shared state. Its parts are on separate cache lines, so that frequent writes to one part do not slow down reads
/// of another.
pub struct State {
    last: CachePadded<AtomicU64>,
    terms: CachePadded<Terms>,
    extension: CachePadded<Extension>,
}

/// Words that were drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drawn {
    /// The words.
    pub run: Run,
    /// True if half of the reservation is used. The reservation should then be extended.
    pub renew: bool,
}

impl State {
    /// Creates a state that issues nothing until it is loaded and a reservation is published.
    pub fn new() -> State {
        State {
            last: CachePadded::new(AtomicU64::new(NOT_LOADED)),
            terms: CachePadded::default(),
            extension: CachePadded::default(),
        }
    }

    /// Draws words that belong to the caller alone. `clock` turns an offset into generator time. It is called once for each
    /// attempt, after the state is read. If `clock` were called earlier, the caller could see words that are later than its own
    /// time, and would mistake the difference for a lead.
    #[inline(always)]
    pub fn draw(
        &self,
        limits: &Limits,
        pace: Pace,
        request: Request,
        mut clock: impl FnMut(u64) -> Nanos,
    ) -> Result<Drawn, Obstacle> {
        loop {
            // Acquire: this load pairs with the Release of `load`, so that the code below does not read a ceiling of an earlier
            // generation.
            let last = self.last.load(Ordering::Acquire);
            if last >= NOT_LOADED {
                return Err(Obstacle::NotLoaded);
            }
            let ceiling = self.terms.ceiling.load(Ordering::Relaxed);
            let now = clock(self.terms.offset.load(Ordering::Relaxed));
            match step(last, now, ceiling, limits, pace, request) {
                Ok(run) => {
                    // The atomic swap alone decides who owns the words. Acquire: see [`Assignment`].
                    let swap = self.last.compare_exchange_weak(last, run.last(), Ordering::Acquire, Ordering::Relaxed);
                    if swap.is_ok() {
                        let renew = run.last() >= self.terms.renew.load(Ordering::Relaxed);
                        return Ok(Drawn { run, renew });
                    }
                }
                Err(obstacle) => return Err(obstacle),
            }
        }
    }

    /// Returns the last word issued, or `None` while the state is not loaded.
    pub fn last(&self) -> Option<u64> {
        Some(self.last.load(Ordering::Acquire)).filter(|last| *last < NOT_LOADED)
    }

    /// Returns the last word issued since the state was loaded, or `None` if there is none.
    pub fn last_issued(&self) -> Option<u64> {
        // `began` is read after `last`, because `load` stores `began` before it stores `last`.
        self.last().filter(|last| *last > self.extension.began.load(Ordering::Relaxed))
    }

    /// Returns true if half of the published reservation is used.
    pub fn is_due(&self) -> bool {
        self.last_issued().is_some_and(|last| last >= self.terms.renew.load(Ordering::Relaxed))
    }

    /// Returns the first word that may not be issued yet, or `None` if nothing is published in this generation.
    pub fn published(&self) -> Option<u64> {
        let ceiling = self.terms.ceiling.load(Ordering::SeqCst);
        Some(ceiling).filter(|ceiling| *ceiling > self.extension.generation.load(Ordering::SeqCst))
    }

    /// Loads the state, so that words from `first` on are issued as soon as a reservation is published. Returns true for the one
    /// caller that succeeds. Returns false if the state is already loaded, if another caller is loading it, or if it was unloaded
    /// after `generation` was read. In this case, the caller retries.
    pub fn load(&self, generation: Generation, first: u64, clock: GeneratorClock) -> bool {
        // The change of the clock below makes comparisons and loads that began earlier ineffective.
        let version = self.extension.version.load(Ordering::Acquire);
        if self.last().is_some() || !self.change_clock(version, clock) {
            return false;
        }
        // The first word is above the generation number, which takes the place of the ceiling until a reservation is published.
        let first = first.max(generation.0 + 1);
        self.extension.began.store(first - 1, Ordering::Relaxed);
        // This is a compare-and-swap, so that a caller that was stopped here does not set the state back. Release: a caller that
        // sees that the state is loaded also sees its clock and its assignment, and does not see a ceiling of an earlier generation.
        let before = NOT_LOADED + generation.0;
        self.last.compare_exchange(before, first - 1, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    /// Stops the issuing of words until the state is loaded again.
    pub fn unload(&self) {
        let next = self.extension.generation.load(Ordering::SeqCst) + 1;
        self.last.swap(NOT_LOADED + next, Ordering::SeqCst);
        // The generation is written after `last`, so that a caller that reads this generation finds the state unloaded, or loaded
        // again.
        let generation = self.extension.generation.fetch_add(1, Ordering::SeqCst) + 1;
        // The ceiling gets a value that no ceiling of an earlier generation had, so that the swap of a publisher that has already
        // checked the generation fails. (The exception is a publisher that sleeps between its check and its swap until this
        // generation has published exactly the ceiling that the publisher had read.)
        self.terms.ceiling.swap(generation, Ordering::SeqCst);
        self.terms.renew.store(0, Ordering::Relaxed);
        self.extension.window.store(0, Ordering::Relaxed);
        self.extension.claimed_until.store(0, Ordering::Relaxed);
        self.extension.look_at.store(0, Ordering::Relaxed);
    }

    /// Returns the assignment of the worker ID for which the state is loaded. [`crate::Assignment`] explains why words
    /// that were drawn are compared with it.
    #[inline(always)]
    pub fn assignment(&self) -> &Assignment {
        &self.terms.assignment
    }

    /// Returns true if the state is loaded for assignment `number`. A caller that has drawn words drops them if it is not.
    #[inline(always)]
    pub fn has_assignment(&self, number: u64) -> bool {
        self.assignment().get() == number
    }

    /// Unloads the state and changes its assignment from `from` to number `to`. The caller has the lock that [`State::unload`]
    /// needs. Returns false if the assignment is not `from` any more, or changes at the same time.
    pub fn assign(&self, from: u64, to: u64) -> bool {
        let first = self.assignment().begin(from, to);
        if first {
            self.unload();
        }
        first && self.assignment().end(to)
    }

    /// Returns the generation. Read the generation before [`State::last`].
    pub fn generation(&self) -> Generation {
        Generation(self.extension.generation.load(Ordering::SeqCst))
    }

    /// Returns the oldest mark of this generation that was written but is not known to be durable.
    pub fn pending(&self) -> Option<Pending> {
        self.extension.pending.read().filter(|pending| pending.generation == self.generation())
    }

    /// Notes a mark that was written. The first caller that finds the mark durable publishes its reservation. An older mark stays
    /// noted, because it becomes durable earlier.
    pub fn note(&self, pending: &Pending) {
        self.extension.pending.note(pending);
    }

    /// Publishes the reservation of a mark that was found durable, and forgets the mark. `took` is how long it took to make the
    /// mark durable, if this is known. Returns false and publishes nothing if the state was unloaded after the mark was written.
    pub fn settle(&self, pending: &Pending, took: Option<Nanos>) -> bool {
        let took = took.unwrap_or_else(|| self.extension.took.load(Ordering::Relaxed));
        let published = self.publish(pending.generation, pending.reservation, took);
        if published {
            self.extension.settled_for.store(pending.time, Ordering::Relaxed);
            // Release: a caller that sees the time of this mark also sees the time of the mark's reservation.
            self.extension.settled_written.store(pending.written, Ordering::Release);
        }
        self.forget(pending);
        published
    }

    /// Forgets a mark if it is the pending mark.
    pub fn forget(&self, pending: &Pending) {
        self.extension.pending.forget(pending);
    }

    /// Returns two times of the mark that was settled last: the time at which the mark was written, by the monotonic clock, and
    /// the generator time of its reservation.
    pub fn settled(&self) -> (Nanos, Nanos) {
        let written = self.extension.settled_written.load(Ordering::Acquire);
        (written, self.extension.settled_for.load(Ordering::Relaxed))
    }

    /// Returns the times at which requests for more than one word were granted.
    pub fn bulk(&self) -> &Bulk {
        &self.extension.bulk
    }

    /// Returns the next reservation at generator time `now`. The reservation covers all words below `needed`.
    pub fn next_reservation(&self, limits: &Limits, now: Nanos, needed: u64) -> Reservation {
        let e = &self.extension;
        let late = now.saturating_sub(limits.time(self.terms.renew.load(Ordering::Relaxed)));
        let window = next_window(e.window.load(Ordering::Relaxed), late, e.took.load(Ordering::Relaxed));
        e.window.store(window, Ordering::Relaxed);
        Reservation::new(limits, now, needed, window)
    }

    /// Makes the words of a reservation available. The mark above these words is durable, and it took the time `took` to make it
    /// durable. Returns false and publishes nothing if the state was unloaded after `generation` was read.
    pub fn publish(&self, generation: Generation, reservation: Reservation, took: Nanos) -> bool {
        self.extension.took.store(took, Ordering::Relaxed);
        let ceiling = &self.terms.ceiling;
        loop {
            // The ceiling is read before the generation; see `unload`.
            let known = ceiling.load(Ordering::SeqCst);
            if self.generation() != generation {
                return false;
            }
            if known > reservation.ceiling {
                return true;
            }
            if ceiling.compare_exchange(known, reservation.ceiling, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
                self.terms.renew.store(reservation.renew, Ordering::Relaxed);
                return true;
            }
        }
    }

    /// Returns the numbers of the clock.
    pub fn clock(&self) -> GeneratorClock {
        let e = &self.extension;
        GeneratorClock {
            offset: self.terms.offset.load(Ordering::Relaxed),
            reference: e.reference.load(Ordering::Relaxed),
            seen: e.seen.load(Ordering::Relaxed),
            hold_until: e.hold_until.load(Ordering::Relaxed),
            apart: e.apart.load(Ordering::Relaxed),
            compared_at: e.compared_at.load(Ordering::Relaxed),
        }
    }

    /// Compares the clocks, and moves generator time accordingly. `read` reads the clocks after the state has been read. If
    /// several callers compare the clocks at the same time, one of them gets the event.
    pub fn discipline(&self, read: impl FnOnce() -> Reading, issued: Nanos, rules: &ClockRules) -> Disciplined {
        let version = self.extension.version.load(Ordering::Acquire);
        let before = self.clock();
        let reading = read();
        let mut disciplined = before.discipline(reading, issued, rules);
        if !self.change_clock(version, disciplined.clock) {
            // This function does not wait, because the caller that has made the version odd can be stopped. The next comparison
            // sees what this comparison misses.
            disciplined.event = None;
        }
        match disciplined.event {
            Some(ClockEvent::Regression(by) | ClockEvent::Restored(by)) => {
                self.extension.regressions.add(by, reading.wall);
            }
            Some(ClockEvent::Jump(by)) => self.extension.jumps.add(by, reading.wall),
            _ => {}
        }
        disciplined
    }

    /// Accepts the wall clock as correct, and returns by how much generator time moved. Returns `None` if another caller is
    /// changing the numbers of the clock. In this case, the caller retries.
    pub fn accept_clock(&self, read: impl FnOnce() -> Reading) -> Option<Nanos> {
        let version = self.extension.version.load(Ordering::Acquire);
        let before = self.clock();
        let after = before.accept(read());
        self.change_clock(version, after).then(|| after.offset.wrapping_sub(before.offset))
    }

    /// Stores the numbers of the clock that were derived from the numbers read at `version`. Returns false if another caller was
    /// faster.
    fn change_clock(&self, version: u64, after: GeneratorClock) -> bool {
        let e = &self.extension;
        // If the version is odd, another caller is changing the numbers. AcqRel: the caller that succeeds has read numbers that
        // belong together.
        let first = version.is_multiple_of(2)
            && e.version.compare_exchange(version, version + 1, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        if first {
            e.seen.store(after.seen, Ordering::Relaxed);
            e.reference.store(after.reference, Ordering::Relaxed);
            e.hold_until.store(after.hold_until, Ordering::Relaxed);
            e.apart.store(after.apart, Ordering::Relaxed);
            e.compared_at.store(after.compared_at, Ordering::Relaxed);
            self.terms.offset.store(after.offset, Ordering::Relaxed);
            e.version.fetch_add(1, Ordering::Release);
        }
        first
    }

    /// Returns the backward steps of the wall clock.
    pub fn clock_regressions(&self) -> Incidents {
        self.extension.regressions.read()
    }

    /// Returns the forward steps of the wall clock that were not followed.
    pub fn clock_jumps(&self) -> Incidents {
        self.extension.jumps.read()
    }

    /// Forgets the steps of the wall clock that were counted.
    pub fn forget_incidents(&self) {
        self.extension.regressions.clear();
        self.extension.jumps.clear();
    }
}

impl Default for State {
    fn default() -> Self {
        State::new()
    }
}
