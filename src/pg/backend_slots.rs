//! An array in shared memory with one slot for each possible backend. Its length is known only when the server starts.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::ffi::CStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use pgrx::shmem::PgSharedMemoryInitialization;
use pgrx::{pg_guard, pg_sys};

use crate::pg::versions;

/// The alignment of shared memory: `PG_CACHE_LINE_SIZE` of `pg_config_manual.h`, to which `ShmemAlloc` rounds up.
pub const SHARED_ALIGNMENT: usize = 128;

/// The slots. A `static` of this type is set up with pgrx's macro `pg_shmem_init!(SLOTS = ())`, in the postmaster while it preloads
/// libraries.
pub struct BackendSlots<T: 'static> {
    name: &'static CStr,
    slots: UnsafeCell<&'static [T]>,
}

// SAFETY: the slice is written only by the postmaster, each time it sets up shared memory, and is only read otherwise.
// `T` is `Sync`, so that several processes may use one slot.
unsafe impl<T: Sync> Sync for BackendSlots<T> {}

impl<T: Default> BackendSlots<T> {
    /// Slots that are not set up yet.
    ///
    /// # Safety
    ///
    /// No other segment of shared memory has this name. `T` contains no pointer, and no value that a process owns: every backend
    /// reads the slots of all others.
    pub const unsafe fn new(name: &'static CStr) -> BackendSlots<T> {
        BackendSlots { name, slots: UnsafeCell::new(&[]) }
    }

    /// All slots, or none if the library is not preloaded.
    pub fn all(&self) -> &'static [T] {
        // SAFETY: the process has one thread, and the slice was written before the process started.
        unsafe { *self.slots.get() }
    }

    /// The slot of this backend, by its number; `None` in a process that is not a backend.
    pub fn own(&self) -> Option<&'static T> {
        versions::backend_number().and_then(|number| self.all().get(number))
    }

    fn number() -> usize {
        // SAFETY: PostgreSQL computes this variable before it requests shared memory.
        unsafe { pg_sys::MaxBackends }.max(0) as usize
    }
}

/// The slot that this process has taken. Read for every ID, so it costs one load: `OnceLock` has two.
pub struct OwnSlot<T: 'static>(AtomicPtr<T>);

impl<T: Sync> OwnSlot<T> {
    /// No slot yet.
    pub const fn new() -> OwnSlot<T> {
        OwnSlot(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// The slot; the first time, the one that `take` returns.
    #[inline(always)]
    pub fn get_or_take(&self, take: fn() -> &'static T) -> &'static T {
        // SAFETY: null, or a reference that lives as long as this process.
        unsafe { self.0.load(Ordering::Relaxed).as_ref() }.unwrap_or_else(|| {
            let slot = take();
            self.0.store(std::ptr::from_ref(slot).cast_mut(), Ordering::Relaxed);
            slot
        })
    }
}

impl<T: Default> PgSharedMemoryInitialization for BackendSlots<T> {
    type Value = ();

    unsafe fn on_shmem_request(&'static self) {
        // SAFETY: called from `shmem_request_hook`.
        unsafe { pg_sys::RequestAddinShmemSpace(Self::number() * size_of::<T>()) };
    }

    unsafe fn on_shmem_startup(&'static self, (): ()) {
        let (number, mut found) = (Self::number(), false);
        const { assert!(align_of::<T>() <= SHARED_ALIGNMENT) };
        // SAFETY: called from `shmem_startup_hook`, in the one process there is, so the segment's list needs no lock. The memory
        // is aligned, lives as long as the process, and every slot is written before it is read.
        unsafe {
            let bytes = number * size_of::<T>();
            let memory = pg_sys::ShmemInitStruct(self.name.as_ptr(), bytes, &raw mut found).cast::<T>();
            if !found {
                (0..number).for_each(|n| memory.add(n).write(T::default()));
            }
            *self.slots.get() = std::slice::from_raw_parts(memory, number);
        }
    }
}

/// The process ID of this process, as `pg_stat_activity` shows it.
pub fn process_id() -> i32 {
    // SAFETY: a plain variable of this process.
    unsafe { pg_sys::MyProcPid }
}

/// Calls `leave` when this backend ends. Called once per process.
pub fn at_exit(leave: fn()) {
    static LEAVE: OnceLock<fn()> = OnceLock::new();
    #[pg_guard]
    unsafe extern "C-unwind" fn call(_code: i32, _argument: pg_sys::Datum) {
        if let Some(leave) = LEAVE.get() {
            leave();
        }
    }
    let _ = LEAVE.set(leave);
    // SAFETY: a callback that stays loaded as long as this process.
    unsafe { pg_sys::on_shmem_exit(Some(call), pg_sys::Datum::from(0)) };
}
