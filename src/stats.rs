//! What each backend has done: counters in shared memory, one slot for each backend there can be.
//!
//! # Locking contract
//!
//! Only the backend that has a slot counts in it, with plain loads and stores; anybody may read at any time. A slot's counters
//! are never set back: what was counted before its backend began, and before the last [`reset`], is remembered beside them and
//! subtracted by who reads. So counts outlive their backend without anybody carrying them over, and what is subtracted can be
//! read at a moment when it belongs to the one before: these numbers are for people, no ID depends on them.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use flake::Nanos;
use pgrx::shmem::PgSharedMemoryInitialization;
use pgrx::{PGRXSharedMemory, pg_guard, pg_shmem_init, pg_sys};

use crate::faults::{self, Fault};
use crate::wait::Wait;
use crate::{clock, major, shmem};

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// IDs drawn.
    Issued,
    /// Swaps of the last word that another session was faster with.
    Retries,
    /// Extensions of the reservation.
    Extensions,
    /// Sleeps, by what for; their times follow.
    ThrottledWaits,
    /// Nanoseconds asleep.
    ThrottledTime,
    /// As above.
    MarkWaits,
    /// As above.
    MarkTime,
    /// As above.
    ClockWaits,
    /// As above.
    ClockTime,
}

const COUNTS: usize = Count::ClockTime as usize + 1;

/// Numbers of one backend, or the sum of several.
#[derive(Clone, Copy, Default)]
pub struct Counts([u64; COUNTS]);

impl Counts {
    /// One of them.
    pub fn get(&self, count: Count) -> u64 {
        self.0[count as usize]
    }

    /// Nanoseconds as the views show them, in milliseconds.
    pub fn milliseconds(&self, count: Count) -> f64 {
        self.get(count) as f64 / 1e6
    }

    fn combine(self, other: Counts, with: impl Fn(u64, u64) -> u64) -> Counts {
        Counts(std::array::from_fn(|n| with(self.0[n], other.0[n])))
    }
}

/// Counters on cache lines of their own: pairs of 64 bytes, see [`flake::State`].
#[repr(C, align(128))]
#[derive(Default)]
struct Counters([AtomicU64; COUNTS]);

impl Counters {
    /// Only the slot's own backend counts, so that no locked instruction is needed.
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

/// One backend's place. Zero bytes are an empty one.
#[repr(C)]
#[derive(Default)]
struct Slot {
    counters: Counters,
    /// The counters when the slot's backend began.
    at_start: Counters,
    /// The counters when the statistics were reset.
    at_reset: Counters,
    /// The backend's process ID, 0 without one.
    pid: AtomicI32,
    /// What it sleeps for: a [`Wait`] and 1, 0 while it does not.
    asleep: AtomicU32,
}

/// What is known of a backend.
pub struct Backend {
    /// Its process ID.
    pub pid: i32,
    /// What it has done since it began, or since the statistics were reset.
    pub counts: Counts,
    /// What it sleeps for.
    pub asleep: Option<Wait>,
}

impl Slot {
    fn backend(&self) -> Option<Backend> {
        let pid = Some(self.pid.load(Ordering::Acquire)).filter(|pid| *pid != 0)?;
        let before = self.at_start.read().combine(self.at_reset.read(), u64::max);
        let asleep = self.asleep.load(Ordering::Relaxed);
        Some(Backend {
            pid,
            counts: self.counters.read().combine(before, u64::saturating_sub),
            asleep: Wait::ALL.into_iter().find(|wait| *wait as u32 + 1 == asleep),
        })
    }

    fn total(&self) -> Counts {
        self.counters.read().combine(self.at_reset.read(), u64::saturating_sub)
    }
}

/// The slots in shared memory, as many as there can be backends: a number that is known only when the server starts.
struct Slots(UnsafeCell<&'static [Slot]>);

// SAFETY: written once, in the postmaster before it forks and again when it sets up shared memory anew; then only read.
#[allow(unsafe_code)]
unsafe impl Sync for Slots {}

static SLOTS: Slots = Slots(UnsafeCell::new(&[]));

impl Slots {
    #[allow(unsafe_code)]
    fn all(&self) -> &'static [Slot] {
        // SAFETY: no other thread, and written only before this process began.
        unsafe { *self.0.get() }
    }

    #[allow(unsafe_code)]
    fn number() -> usize {
        // SAFETY: a setting that PostgreSQL has computed before it asks for shared memory.
        unsafe { pg_sys::MaxBackends }.max(0) as usize
    }
}

#[allow(unsafe_code)]
impl PgSharedMemoryInitialization for Slots {
    type Value = ();

    unsafe fn on_shmem_request(&'static self) {
        // SAFETY: called from `shmem_request_hook`.
        unsafe { pg_sys::RequestAddinShmemSpace(Slots::number() * size_of::<Slot>()) };
    }

    unsafe fn on_shmem_startup(&'static self, (): ()) {
        let (number, mut found) = (Slots::number(), false);
        // SAFETY: called from `shmem_startup_hook`, in the one process there is, so the segment's list needs no lock. The memory
        // is aligned to PG_CACHE_LINE_SIZE, 128 bytes, and lives as long as the process; zero bytes are valid slots, made of
        // atomics.
        unsafe {
            let name = c"snowflake_pg slots".as_ptr();
            let memory = pg_sys::ShmemInitStruct(name, number * size_of::<Slot>(), &mut found).cast::<Slot>();
            assert!(memory.is_aligned(), "shared memory is not aligned");
            if !found {
                memory.write_bytes(0, number);
            }
            *self.0.get() = std::slice::from_raw_parts(memory, number);
        }
    }
}

// SAFETY: made of atomics, without pointers.
#[allow(unsafe_code)]
unsafe impl PGRXSharedMemory for Slot {}

/// This backend's slot, null before it is first needed.
static OWN: AtomicPtr<Slot> = AtomicPtr::new(std::ptr::null_mut());

/// Asks for the slots. In the postmaster, while it preloads libraries.
#[allow(unsafe_code, clippy::undocumented_unsafe_blocks)] // The macro's own blocks.
pub fn request() {
    pg_shmem_init!(SLOTS = ());
}

/// Counts.
#[inline(always)]
pub fn add(count: Count, number: u64) {
    if cfg!(feature = "uncounted") {
        return;
    }
    own().counters.add(count, number);
}

/// Counts a sleep, and shows that it goes on.
pub fn asleep<R>(what: Wait, sleep: impl FnOnce() -> R) -> R {
    let slot = own();
    slot.asleep.store(what as u32 + 1, Ordering::Relaxed);
    let begun = clock::monotonic();
    let result = sleep();
    let took = clock::monotonic() - begun;
    slot.asleep.store(0, Ordering::Relaxed);
    let (waits, time) = match what {
        Wait::Throttled => (Count::ThrottledWaits, Count::ThrottledTime),
        Wait::Mark => (Count::MarkWaits, Count::MarkTime),
        Wait::Clock => (Count::ClockWaits, Count::ClockTime),
    };
    slot.counters.add(waits, 1);
    slot.counters.add(time, took);
    result
}

/// Counts an extension of the reservation.
pub fn extended(took: Nanos) {
    add(Count::Extensions, 1);
    shmem::slowest_extension().fetch_max(took, Ordering::Relaxed);
}

/// The backends that have drawn or waited since they began.
pub fn backends() -> impl Iterator<Item = Backend> {
    SLOTS.all().iter().filter_map(Slot::backend)
}

/// What all backends have done, those that are gone among them, since the server started or the statistics were reset.
pub fn total() -> Counts {
    SLOTS.all().iter().map(Slot::total).fold(Counts::default(), |sum, next| sum.combine(next, u64::wrapping_add))
}

/// Lets all counts begin at 0.
pub fn reset() {
    for slot in SLOTS.all() {
        slot.at_reset.set(slot.counters.read());
    }
    shmem::slowest_extension().store(0, Ordering::Relaxed);
    shmem::state().forget_incidents();
    shmem::counting_since().store(clock::wall(), Ordering::Relaxed);
}

#[inline(always)]
#[allow(unsafe_code)]
fn own() -> &'static Slot {
    // SAFETY: null, or a slot of shared memory that stays mapped while this process lives.
    unsafe { OWN.load(Ordering::Relaxed).as_ref() }.unwrap_or_else(attach)
}

/// Takes the slot that is this backend's by its number.
#[cold]
#[allow(unsafe_code)]
fn attach() -> &'static Slot {
    let slot = major::backend_number().and_then(|number| SLOTS.all().get(number));
    // A process that is no backend: its counts are nobody's.
    let slot = slot.unwrap_or_else(|| Box::leak(Box::new(Slot::default())));
    if faults::on(Fault::CountsForgotten) {
        slot.counters.set(Counts::default());
    }
    slot.at_start.set(slot.counters.read());
    slot.asleep.store(0, Ordering::Relaxed);
    // SAFETY: a plain variable of this process, and a callback that stays loaded as long as it.
    unsafe {
        slot.pid.store(pg_sys::MyProcPid, Ordering::Release);
        pg_sys::on_shmem_exit(Some(detach), pg_sys::Datum::from(0));
    }
    OWN.store(std::ptr::from_ref(slot).cast_mut(), Ordering::Relaxed);
    slot
}

/// Leaves the slot to the next backend, with its counts.
#[allow(unsafe_code)]
#[pg_guard]
unsafe extern "C-unwind" fn detach(_code: i32, _argument: pg_sys::Datum) {
    own().pid.store(0, Ordering::Release);
}
