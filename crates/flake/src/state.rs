//! The state that all callers share, and the lock-free loop that draws words from it.
//!
//! # Locking contract
//!
//! No function waits. If a request cannot be granted at once, the function returns the obstacle, and the caller acts on
//! it.
//!
//! - While the state is loaded, `last` changes only by compare-and-swap, and only increases. The caller whose swap
//!   succeeds owns the words from the old value up to the new one.
//! - While the state is loaded, `ceiling` only increases. All published words are below a durable mark.
//! - Callers must hold a lock so that [`State::unload`] never runs while another caller reads a mark for
//!   [`State::load`]. The lock does not prevent two loads at the same time, because the processes of a parallel query
//!   share their locks.
//! - [`State::unload`] begins a new *generation*. From then on, reservations of earlier generations are not published,
//!   and marks that were read in earlier generations are not loaded.
//! - Each loaded state belongs to one *assignment* of a worker ID ([`crate::Assignment`]). After it has drawn words, a
//!   caller compares the state's assignment with its own, and discards the words if they differ.
//! - The clock fields are changed together, by the caller that has made the *version* odd. If another comparison of the
//!   clocks has finished in the meantime, a comparison changes nothing.
//! - The oldest mark that has been written but is not known to be durable is *pending*. Any caller that finds this mark
//!   durable can publish its reservation.

mod extension_claim;

use crossbeam_utils::CachePadded;

pub use extension_claim::Claim;

use crate::assignment::Assignment;
use crate::bulk::Bulk;
use crate::current_tick::CurrentTick;
use crate::incidents::IncidentRecord;
use crate::pending::Place;
use crate::sync::{AtomicU64, Ordering};
use crate::{
    ClockEvent, ClockRules, Disciplined, Generation, GeneratorClock, Incidents, Limits, Nanos, Obstacle, Pace, Pending,
    Reading, Request, Reservation, Run, next_window, step,
};

/// While the state is not loaded, `last` is this value plus the generation. All words are smaller than this value, so a
/// draw cannot succeed.
pub const NOT_LOADED: u64 = 1 << 63;

/// The values that every draw reads but that only extensions of the reservation write.
#[derive(Default)]
struct Terms {
    ceiling: AtomicU64,
    renew: AtomicU64,
    offset: AtomicU64,
    assignment: Assignment,
}

/// The values that only extensions of the reservation use.
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

/// The shared state of the generator. Its parts are on separate cache lines, so that frequent writes to one part do not
/// slow down reads of another part.
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
    /// True if half of the reservation has been used, so that the caller should extend it.
    pub renew: bool,
}

/// Why [`State::next`] has drawn no word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undecided {
    /// The last word is not in the remembered tick, this tick has ended or is too far ahead of the clock, or the word is not
    /// reserved.
    OtherTick,
    /// Another caller has drawn the word.
    Contended,
}

impl State {
    /// Creates a state that issues nothing until it has been loaded and a reservation has been published.
    pub fn new() -> State {
        State {
            last: CachePadded::new(AtomicU64::new(NOT_LOADED)),
            terms: CachePadded::default(),
            extension: CachePadded::default(),
        }
    }

    /// Draws one word that belongs to the caller alone, if the last word is in the tick that the caller remembers, and the clock
    /// is in this tick or at most `ahead` before it. The word is the one that [`State::draw`] would draw. Otherwise, the caller calls
    /// that function.
    #[inline(always)]
    pub fn next(
        &self,
        current: &CurrentTick,
        ahead: Nanos,
        clock: impl FnOnce(u64) -> Nanos,
    ) -> Result<Drawn, Undecided> {
        // The orders are those of `draw`. A state that is not loaded has no word in a tick.
        let last = self.last.load(Ordering::Acquire);
        let ceiling = self.terms.ceiling.load(Ordering::Relaxed);
        let now = clock(self.terms.offset.load(Ordering::Relaxed));
        let Some(word) = current.next(last, now, ahead).filter(|word| *word < ceiling) else {
            return Err(Undecided::OtherTick);
        };
        self.take(last, Run { first: word, count: 1 }).ok_or(Undecided::Contended)
    }

    /// Draws words that belong to the caller alone. `clock` converts an offset to generator time. It is called once in
    /// each attempt, after the state has been read. If it were called earlier, the words of other callers could be
    /// later than the caller's time, and the caller would mistake the difference for a lead.
    #[inline(always)]
    pub fn draw(
        &self,
        limits: &Limits,
        pace: Pace,
        request: Request,
        mut clock: impl FnMut(u64) -> Nanos,
    ) -> Result<Drawn, Obstacle> {
        loop {
            // Acquire: this load pairs with the Release in `load`. As a result, the code below cannot read the ceiling
            // of an earlier generation.
            let last = self.last.load(Ordering::Acquire);
            if last >= NOT_LOADED {
                return Err(Obstacle::NotLoaded);
            }
            let ceiling = self.terms.ceiling.load(Ordering::Relaxed);
            let now = clock(self.terms.offset.load(Ordering::Relaxed));
            let run = step(last, now, ceiling, limits, pace, request)?;
            if let Some(drawn) = self.take(last, run) {
                return Ok(drawn);
            }
        }
    }

    /// Takes the words of a run that follows `last`. Returns `None` if another caller has drawn words since `last` was
    /// read.
    #[inline(always)]
    fn take(&self, last: u64, run: Run) -> Option<Drawn> {
        // This swap alone decides which caller owns the words. [`Assignment`] explains why it needs Acquire.
        self.last.compare_exchange_weak(last, run.last(), Ordering::Acquire, Ordering::Relaxed).ok()?;
        Some(Drawn { run, renew: run.last() >= self.terms.renew.load(Ordering::Relaxed) })
    }

    /// Returns the word that was issued last, or `None` while the state is not loaded.
    pub fn last(&self) -> Option<u64> {
        Some(self.last.load(Ordering::Acquire)).filter(|last| *last < NOT_LOADED)
    }

    /// Returns the word that was issued last since the state was loaded, or `None` if no word has been issued since
    /// then.
    pub fn last_issued(&self) -> Option<u64> {
        // `began` must be read after `last`, because `load` stores `began` before it stores `last`.
        self.last().filter(|last| *last > self.extension.began.load(Ordering::Relaxed))
    }

    /// Returns true if half of the published reservation has been used.
    pub fn is_due(&self) -> bool {
        self.last_issued().is_some_and(|last| last >= self.terms.renew.load(Ordering::Relaxed))
    }

    /// Returns the first word that may not be issued yet, or `None` if no reservation has been published in this
    /// generation.
    pub fn published(&self) -> Option<u64> {
        let ceiling = self.terms.ceiling.load(Ordering::SeqCst);
        Some(ceiling).filter(|ceiling| *ceiling > self.extension.generation.load(Ordering::SeqCst))
    }

    /// Loads the state. Words from `first` on are issued as soon as a reservation is published. Returns true to the one
    /// caller that succeeds. Returns false if the state is already loaded, if another caller is loading it, or if it
    /// has been unloaded since `generation` was read. A caller that gets false retries.
    pub fn load(&self, generation: Generation, first: u64, clock: GeneratorClock) -> bool {
        // The change of the clock below invalidates all comparisons and loads that began earlier.
        let version = self.extension.version.load(Ordering::Acquire);
        if self.last().is_some() || !self.change_clock(version, clock) {
            return false;
        }
        // Until a reservation is published, the ceiling contains the generation number. The first word must therefore
        // be above this number.
        let first = first.max(generation.0 + 1);
        self.extension.began.store(first - 1, Ordering::Relaxed);
        // A plain store could set the state back if this caller had been stopped here for a while. Release: a caller
        // that sees the loaded state also sees its clock and its assignment, and does not see the ceiling of an earlier
        // generation.
        let before = NOT_LOADED + generation.0;
        self.last.compare_exchange(before, first - 1, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    /// Unloads the state. No words are issued until it is loaded again.
    pub fn unload(&self) {
        let next = self.extension.generation.load(Ordering::SeqCst) + 1;
        self.last.swap(NOT_LOADED + next, Ordering::SeqCst);
        // The generation is written after `last`. A caller that reads the new generation therefore finds the state
        // either unloaded or loaded again.
        let generation = self.extension.generation.fetch_add(1, Ordering::SeqCst) + 1;
        // The new value differs from every ceiling of earlier generations. If a publisher has already checked the
        // generation, its swap fails. (The swap can succeed in only one case: the publisher sleeps between
        // its check and its swap until this generation has published exactly the ceiling that the publisher read.)
        self.terms.ceiling.swap(generation, Ordering::SeqCst);
        self.terms.renew.store(0, Ordering::Relaxed);
        self.extension.window.store(0, Ordering::Relaxed);
        self.extension.claimed_until.store(0, Ordering::Relaxed);
        self.extension.look_at.store(0, Ordering::Relaxed);
    }

    /// Returns the worker ID assignment for which the state is loaded. [`crate::Assignment`] explains why callers
    /// compare it after drawing words.
    #[inline(always)]
    pub fn assignment(&self) -> &Assignment {
        &self.terms.assignment
    }

    /// Returns true if the state is loaded for assignment `number`. If it is not, a caller that has drawn words
    /// discards them.
    #[inline(always)]
    pub fn has_assignment(&self, number: u64) -> bool {
        self.assignment().get() == number
    }

    /// Unloads the state and changes its assignment from `from` to `to`. The caller must hold the lock that
    /// [`State::unload`] requires. Returns false if the assignment is no longer `from`, or if another caller changes it
    /// at the same time.
    pub fn assign(&self, from: u64, to: u64) -> bool {
        let first = self.assignment().begin(from, to);
        if first {
            self.unload();
        }
        first && self.assignment().end(to)
    }

    /// Returns the generation. Callers must read the generation before they call [`State::last`].
    pub fn generation(&self) -> Generation {
        Generation(self.extension.generation.load(Ordering::SeqCst))
    }

    /// Returns the oldest mark of this generation that has been written but is not known to be durable.
    pub fn pending(&self) -> Option<Pending> {
        self.extension.pending.read().filter(|pending| pending.generation == self.generation())
    }

    /// Records a mark that has been written. The first caller that finds the mark durable publishes its reservation. An
    /// older mark is not replaced, because it becomes durable earlier.
    pub fn note(&self, pending: &Pending) {
        self.extension.pending.note(pending);
    }

    /// Publishes the reservation of a mark that was found to be durable, and clears the pending mark. `took` is the
    /// time that it took to make the mark durable, if known. Returns false, and publishes nothing, if the state was
    /// unloaded after the mark was written.
    pub fn settle(&self, pending: &Pending, took: Option<Nanos>) -> bool {
        let took = took.unwrap_or_else(|| self.extension.took.load(Ordering::Relaxed));
        let published = self.publish(pending.generation, pending.reservation, took);
        if published {
            self.extension.settled_for.store(pending.time, Ordering::Relaxed);
            // Release: a caller that sees when this mark was written also sees the generator time of its reservation.
            self.extension.settled_written.store(pending.written, Ordering::Release);
        }
        self.forget(pending);
        published
    }

    /// Clears the pending mark if it is this mark.
    pub fn forget(&self, pending: &Pending) {
        self.extension.pending.forget(pending);
    }

    /// Returns when the most recently settled mark was written, on the monotonic clock, and the generator time of its
    /// reservation.
    pub fn settled(&self) -> (Nanos, Nanos) {
        let written = self.extension.settled_written.load(Ordering::Acquire);
        (written, self.extension.settled_for.load(Ordering::Relaxed))
    }

    /// Returns the times at which bulk requests were granted.
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

    /// Makes the words of a reservation available. The mark above these words must be durable. `took` is the time that
    /// it took to make the mark durable. Returns false, and publishes nothing, if the state was unloaded after
    /// `generation` was read.
    pub fn publish(&self, generation: Generation, reservation: Reservation, took: Nanos) -> bool {
        self.extension.took.store(took, Ordering::Relaxed);
        let ceiling = &self.terms.ceiling;
        loop {
            // The ceiling must be read before the generation: see `unload`.
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

    /// Returns the clock fields.
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

    /// Compares the clocks, and corrects generator time accordingly. `read` reads the clocks, and is called after the
    /// state has been read. If several callers compare the clocks at the same time, only one of them gets the event.
    pub fn discipline(&self, read: impl FnOnce() -> Reading, issued: Nanos, rules: &ClockRules) -> Disciplined {
        let version = self.extension.version.load(Ordering::Acquire);
        let before = self.clock();
        let reading = read();
        let mut disciplined = before.discipline(reading, issued, rules);
        if !self.change_clock(version, disciplined.clock) {
            // This function does not wait for the caller that made the version odd, because that caller may have been
            // stopped. The next comparison detects what this one misses.
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

    /// Accepts the wall clock as correct, and returns how far generator time moved. Returns `None` if another caller is
    /// changing the clock fields. In this case, the caller retries.
    pub fn accept_clock(&self, read: impl FnOnce() -> Reading) -> Option<Nanos> {
        let version = self.extension.version.load(Ordering::Acquire);
        let before = self.clock();
        let after = before.accept(read());
        self.change_clock(version, after).then(|| after.offset.wrapping_sub(before.offset))
    }

    /// Stores clock fields that were computed from those that were read at `version`. Returns false if another caller
    /// has changed them in the meantime.
    fn change_clock(&self, version: u64, after: GeneratorClock) -> bool {
        let e = &self.extension;
        // If the version is odd, another caller is changing the fields. AcqRel: the fields that the successful caller
        // has read belong together.
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

    /// Returns the record of backward steps of the wall clock.
    pub fn clock_regressions(&self) -> Incidents {
        self.extension.regressions.read()
    }

    /// Returns the record of forward steps of the wall clock that were not followed.
    pub fn clock_jumps(&self) -> Incidents {
        self.extension.jumps.read()
    }

    /// Clears the records of clock steps.
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
