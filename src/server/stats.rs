//! Statistics about the activity of each backend. They are in shared memory, in one slot for each possible backend.
//!
//! # Locking contract
//!
//! Only the backend that has taken a slot writes to its counters, with plain loads and stores. Any process can read a
//! slot at any time. The counters in a slot are never reset. Instead, the slot also stores the values that the counters
//! had when the backend started and at the last [`reset`], and readers subtract these values. As a result, the counts
//! of a backend remain available after it exits. A reader may subtract the values of a previous backend. This is
//! acceptable because no ID depends on the statistics.

use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

use crossbeam_utils::CachePadded;
use flake::Nanos;
use pgrx::{pg_guard, pg_shmem_init, pg_sys};

use crate::faults::{self, Fault};
use crate::pg::backend_slots::{self, BackendSlots, OwnSlot};
use crate::pg::wait_event::WaitEvent;
use crate::server::{clock, shmem};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// The number of IDs drawn.
    Issued,
    /// The number of attempts to draw that failed because another session was faster.
    Retries,
    /// The number of extensions of the reservation.
    Extensions,
    /// The number of times a session slept because the lead was at its limit.
    ThrottledWaits,
    /// The total duration of these sleeps, in nanoseconds.
    ThrottledTime,
    /// The number of times a session slept to wait for the mark.
    MarkWaits,
    /// The total duration of these sleeps, in nanoseconds.
    MarkTime,
    /// The number of times a session slept to wait for the wall clock.
    ClockWaits,
    /// The total duration of these sleeps, in nanoseconds.
    ClockTime,
    /// The number of times a session slept to wait for numbers of a segment.
    SegmentWaits,
    /// The total duration of these sleeps, in nanoseconds.
    SegmentTime,
}

const COUNTS: usize = Count::SegmentTime as usize + 1;

/// The counts of one backend, or the sum of several.
#[derive(Clone, Copy, Default)]
pub struct Counts([u64; COUNTS]);

impl Counts {
    /// Returns one of the counts.
    pub fn get(&self, count: Count) -> u64 {
        self.0[count as usize]
    }

    /// Returns a count of nanoseconds in milliseconds, which is the unit that the views show.
    pub fn milliseconds(&self, count: Count) -> f64 {
        self.get(count) as f64 / 1e6
    }

    fn combine(self, other: Counts, with: impl Fn(u64, u64) -> u64) -> Counts {
        Counts(std::array::from_fn(|n| with(self.0[n], other.0[n])))
    }
}

/// The counters of one backend.
#[derive(Default)]
struct Counters([AtomicU64; COUNTS]);

impl Counters {
    /// Adds to a counter. No locked instruction is needed, because only the backend that has taken the slot writes to
    /// the counter.
    #[inline(always)]
    fn add(&self, count: Count, number: u64) {
        let counter = &self.0[count as usize];
        counter.store(counter.load(Ordering::Relaxed).wrapping_add(number), Ordering::Relaxed);
    }

    fn read(&self) -> Counts {
        Counts(std::array::from_fn(|n| self.0[n].load(Ordering::Relaxed)))
    }

    fn set(&self, counts: Counts) {
        self.0.iter().zip(counts.0).for_each(|(counter, count)| counter.store(count, Ordering::Relaxed));
    }
}

/// The slot of one backend.
#[derive(Default)]
struct StatsSlot {
    /// The counters have their own cache lines, because no other backend writes to them.
    counters: CachePadded<Counters>,
    /// The values of the counters when the slot's backend started.
    at_start: Counters,
    /// The values of the counters when the statistics were reset.
    at_reset: Counters,
    /// The process ID of the backend, or 0 if the slot is free.
    pid: AtomicI32,
    /// What the backend is waiting for: the number of a [`WaitEvent`] plus 1, or 0 if the backend is not sleeping.
    asleep: AtomicU32,
}

/// What the views show about a backend.
pub struct Backend {
    pub pid: i32,
    /// The backend's counts since it started or since the statistics were reset.
    pub counts: Counts,
    /// What the backend is waiting for.
    pub asleep: Option<WaitEvent>,
}

impl StatsSlot {
    fn backend(&self) -> Option<Backend> {
        let pid = Some(self.pid.load(Ordering::Acquire)).filter(|pid| *pid != 0)?;
        let before = self.at_start.read().combine(self.at_reset.read(), u64::max);
        let asleep = self.asleep.load(Ordering::Relaxed);
        Some(Backend {
            pid,
            counts: self.counters.read().combine(before, u64::saturating_sub),
            asleep: WaitEvent::ALL.into_iter().find(|wait| *wait as u32 + 1 == asleep),
        })
    }

    fn total(&self) -> Counts {
        self.counters.read().combine(self.at_reset.read(), u64::saturating_sub)
    }
}

// SAFETY: the name is the extension's own, and is used once. A slot consists of atomics and contains no pointers.
#[allow(unsafe_code)]
static SLOTS: BackendSlots<StatsSlot> = unsafe { BackendSlots::new(c"snowflake_pg slots") };

/// The slot of this backend. It is taken when it is first needed.
static OWN: OwnSlot<StatsSlot> = OwnSlot::new();

/// Requests the slots. The postmaster calls this function while it preloads libraries.
#[allow(unsafe_code, clippy::undocumented_unsafe_blocks)] // The unsafe blocks are in the macro.
pub fn request() {
    pg_shmem_init!(SLOTS = ());
}

/// Adds to a count of this backend.
#[inline(always)]
pub fn add(count: Count, number: u64) {
    if cfg!(feature = "uncounted") {
        return;
    }
    own().counters.add(count, number);
}

/// Counts a sleep, and shows it in the views while it lasts.
pub fn asleep<R>(what: WaitEvent, sleep: impl FnOnce() -> R) -> R {
    let slot = own();
    slot.asleep.store(what as u32 + 1, Ordering::Relaxed);
    let _awake = Asleep { slot, what, begun: clock::monotonic() };
    sleep()
}

/// A sleep. It is counted when it ends, even if an error ends it.
struct Asleep {
    slot: &'static StatsSlot,
    what: WaitEvent,
    begun: Nanos,
}

impl Drop for Asleep {
    fn drop(&mut self) {
        let took = clock::monotonic().saturating_sub(self.begun);
        let (waits, time) = match self.what {
            WaitEvent::Throttled => (Count::ThrottledWaits, Count::ThrottledTime),
            WaitEvent::Mark => (Count::MarkWaits, Count::MarkTime),
            WaitEvent::Clock => (Count::ClockWaits, Count::ClockTime),
            WaitEvent::Segment => (Count::SegmentWaits, Count::SegmentTime),
        };
        self.slot.counters.add(waits, 1);
        self.slot.counters.add(time, took);
        self.slot.asleep.store(0, Ordering::Relaxed);
    }
}

/// Counts an extension of the reservation.
pub fn extended(took: Nanos) {
    add(Count::Extensions, 1);
    shmem::slowest_extension().fetch_max(took, Ordering::Relaxed);
}

/// Returns the backends that have drawn IDs or have waited since they started.
pub fn backends() -> impl Iterator<Item = Backend> {
    SLOTS.all().iter().filter_map(StatsSlot::backend)
}

/// Returns the sum of the counts of all backends, including those that have exited, since the server started or the
/// statistics were reset.
pub fn total() -> Counts {
    SLOTS.all().iter().map(StatsSlot::total).fold(Counts::default(), |sum, next| sum.combine(next, u64::wrapping_add))
}

/// Resets all counts to 0.
pub fn reset() {
    for slot in SLOTS.all() {
        slot.at_reset.set(slot.counters.read());
    }
    shmem::slowest_extension().store(0, Ordering::Relaxed);
    shmem::state().forget_incidents();
    shmem::refusals().reset();
    shmem::counting_since().store(clock::wall(), Ordering::Relaxed);
}

#[inline(always)]
fn own() -> &'static StatsSlot {
    OWN.get_or_take(attach)
}

/// Takes the slot that has this backend's number.
#[cold]
fn attach() -> &'static StatsSlot {
    // The counts of a process that is not a backend are discarded.
    let slot = SLOTS.own().unwrap_or_else(|| Box::leak(Box::default()));
    if faults::on(Fault::CountsForgotten) {
        slot.counters.set(Counts::default());
    }
    slot.at_start.set(slot.counters.read());
    slot.asleep.store(0, Ordering::Relaxed);
    slot.pid.store(backend_slots::process_id(), Ordering::Release);
    backend_slots::at_exit(detach);
    slot
}

/// Releases the slot. The counts remain in it.
fn detach() {
    own().pid.store(0, Ordering::Release);
}
