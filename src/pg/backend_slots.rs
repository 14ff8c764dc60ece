//! Arrays in shared memory whose length is known only when the server starts, and the one with a slot for each possible backend.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::ffi::CStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use pgrx::shmem::PgSharedMemoryInitialization;
use pgrx::{pg_guard, pg_sys};

use crate::pg::versions;

/// The alignment of shared memory, which is `PG_CACHE_LINE_SIZE` in `pg_config_manual.h`. `ShmemAlloc` rounds up to this size.
pub const SHARED_ALIGNMENT: usize = 128;

/// An array. A `static` of this type is set up with pgrx's macro `pg_shmem_init!(ARRAY = ())`, in the postmaster while it preloads
/// libraries.
pub struct SharedArray<T: 'static> {
    name: &'static CStr,
    length: fn() -> usize,
    items: UnsafeCell<&'static [T]>,
}

// SAFETY: only the postmaster writes the slice, each time it sets up shared memory. Otherwise, the slice is only read. `T` is
// `Sync`, so several processes may use one item.
unsafe impl<T: Sync> Sync for SharedArray<T> {}

impl<T: Default> SharedArray<T> {
    /// Returns an array that is not set up yet. `length` must return the same number whenever it is called.
    ///
    /// # Safety
    ///
    /// No other segment of shared memory has this name. `T` contains no pointer, and no value that a process owns, because every
    /// backend reads all items.
    pub const unsafe fn new(name: &'static CStr, length: fn() -> usize) -> SharedArray<T> {
        SharedArray { name, length, items: UnsafeCell::new(&[]) }
    }

    /// Returns all items, or returns no items if the array was not requested.
    #[inline]
    pub fn all(&self) -> &'static [T] {
        // SAFETY: the process has one thread, and the slice was written before the process started.
        unsafe { *self.items.get() }
    }
}

/// An array with one slot for each possible backend.
pub struct BackendSlots<T: 'static>(SharedArray<T>);

impl<T: Default> BackendSlots<T> {
    /// Returns slots that are not set up yet.
    ///
    /// # Safety
    ///
    /// As for [`SharedArray::new`].
    pub const unsafe fn new(name: &'static CStr) -> BackendSlots<T> {
        // SAFETY: the caller promises the same.
        BackendSlots(unsafe { SharedArray::new(name, backends) })
    }

    /// Returns all slots, or returns no slots if the library is not preloaded.
    pub fn all(&self) -> &'static [T] {
        self.0.all()
    }

    /// Returns the slot with the number of this backend, or returns `None` in a process that is not a backend.
    pub fn own(&self) -> Option<&'static T> {
        versions::backend_number().and_then(|number| self.all().get(number))
    }
}

/// Returns the number of possible backends.
fn backends() -> usize {
    // SAFETY: PostgreSQL computes this variable before it requests shared memory.
    unsafe { pg_sys::MaxBackends }.max(0) as usize
}

/// The slot that this process has taken. The slot is read for every ID, and reading it takes one load, whereas `OnceLock` takes
/// two loads.
pub struct OwnSlot<T: 'static>(AtomicPtr<T>);

impl<T: Sync> OwnSlot<T> {
    /// Returns a value that holds no slot yet.
    pub const fn new() -> OwnSlot<T> {
        OwnSlot(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// Returns the slot that this process has taken. If the process has not taken a slot yet, takes the slot that `take` returns.
    #[inline(always)]
    pub fn get_or_take(&self, take: fn() -> &'static T) -> &'static T {
        // SAFETY: the pointer is null, or it comes from a reference that lives as long as this process.
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
        // SAFETY: the caller promises the same.
        unsafe { self.0.on_shmem_request() };
    }

    unsafe fn on_shmem_startup(&'static self, (): ()) {
        // SAFETY: the caller promises the same.
        unsafe { self.0.on_shmem_startup(()) };
    }
}

impl<T: Default> PgSharedMemoryInitialization for SharedArray<T> {
    type Value = ();

    unsafe fn on_shmem_request(&'static self) {
        // SAFETY: this function is called from `shmem_request_hook`.
        unsafe { pg_sys::RequestAddinShmemSpace((self.length)() * size_of::<T>()) };
    }

    unsafe fn on_shmem_startup(&'static self, (): ()) {
        let (number, mut found) = ((self.length)(), false);
        const { assert!(align_of::<T>() <= SHARED_ALIGNMENT) };
        // SAFETY: this function is called from `shmem_startup_hook`. At that time there is only one process, so the segment's list
        // needs no lock. The memory is aligned and lives as long as the process, and every slot is written before it is read.
        unsafe {
            let bytes = number * size_of::<T>();
            let memory = pg_sys::ShmemInitStruct(self.name.as_ptr(), bytes, &raw mut found).cast::<T>();
            if !found {
                (0..number).for_each(|n| memory.add(n).write(T::default()));
            }
            *self.items.get() = std::slice::from_raw_parts(memory, number);
        }
    }
}

/// Returns the process ID of this process, as `pg_stat_activity` shows it.
pub fn process_id() -> i32 {
    // SAFETY: this is a plain variable of this process.
    unsafe { pg_sys::MyProcPid }
}

/// Calls `leave` when this backend ends. This function is called once per process.
pub fn at_exit(leave: fn()) {
    static LEAVE: OnceLock<fn()> = OnceLock::new();
    #[pg_guard]
    unsafe extern "C-unwind" fn call(_code: i32, _argument: pg_sys::Datum) {
        if let Some(leave) = LEAVE.get() {
            leave();
        }
    }
    let _ = LEAVE.set(leave);
    // SAFETY: the callback stays loaded as long as this process lives.
    unsafe { pg_sys::on_shmem_exit(Some(call), pg_sys::Datum::from(0)) };
}
