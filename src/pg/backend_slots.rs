//! Arrays in shared memory whose length is known only when the server starts, including arrays with one slot for each
//! possible backend.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::ffi::CStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use pgrx::shmem::PgSharedMemoryInitialization;
use pgrx::{pg_guard, pg_sys};

use crate::pg::versions;

/// The alignment of shared memory: `PG_CACHE_LINE_SIZE` in `pg_config_manual.h`. `ShmemAlloc` rounds up to this size.
pub const SHARED_ALIGNMENT: usize = 128;

/// An array in shared memory. The postmaster sets up a `static` of this type while it preloads libraries, by using
/// pgrx's macro: `pg_shmem_init!(ARRAY = ())`.
pub struct SharedArray<T: 'static> {
    name: &'static CStr,
    length: fn() -> usize,
    items: UnsafeCell<&'static [T]>,
}

// SAFETY: only the postmaster writes the slice, whenever it sets up shared memory. Otherwise, the slice is only read.
// `T` is `Sync`, so several processes may use the same item.
unsafe impl<T: Sync> Sync for SharedArray<T> {}

impl<T: Default> SharedArray<T> {
    /// Returns an array that has not been set up yet. `length` must return the same number each time it is called.
    ///
    /// # Safety
    ///
    /// No other segment of shared memory may have this name. `T` must contain neither pointers nor values that belong
    /// to one process, because every backend reads all items.
    pub const unsafe fn new(name: &'static CStr, length: fn() -> usize) -> SharedArray<T> {
        SharedArray { name, length, items: UnsafeCell::new(&[]) }
    }

    /// Returns all items. The slice is empty if the array was not requested.
    #[inline]
    pub fn all(&self) -> &'static [T] {
        // SAFETY: only the postmaster writes the slice, before it starts the process that reads it.
        unsafe { *self.items.get() }
    }
}

/// An array with one slot for each possible backend.
pub struct BackendSlots<T: 'static>(SharedArray<T>);

impl<T: Default> BackendSlots<T> {
    /// Returns slots that have not been set up yet.
    ///
    /// # Safety
    ///
    /// The requirements are the same as for [`SharedArray::new`].
    pub const unsafe fn new(name: &'static CStr) -> BackendSlots<T> {
        // SAFETY: the caller guarantees the same.
        BackendSlots(unsafe { SharedArray::new(name, backends) })
    }

    /// Returns all slots. The slice is empty if the library is not preloaded.
    pub fn all(&self) -> &'static [T] {
        self.0.all()
    }

    /// Returns the slot with this backend's number, or `None` if this process is not a backend.
    pub fn own(&self) -> Option<&'static T> {
        versions::backend_number().and_then(|number| self.all().get(number))
    }
}

/// Returns the maximum number of backends.
fn backends() -> usize {
    // SAFETY: PostgreSQL computes this variable before it requests shared memory.
    unsafe { pg_sys::MaxBackends }.max(0) as usize
}

/// The slot that this process has taken. The slot is read for every ID. Reading it needs one load, whereas reading a
/// `OnceLock` needs two.
pub struct OwnSlot<T: 'static>(AtomicPtr<T>);

impl<T: Sync> OwnSlot<T> {
    /// Returns a value without a slot.
    pub const fn new() -> OwnSlot<T> {
        OwnSlot(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// Returns the slot that this process has taken. If it has not taken one yet, it takes the slot that `take`
    /// returns.
    #[inline(always)]
    pub fn get_or_take(&self, take: fn() -> &'static T) -> &'static T {
        // SAFETY: the pointer is null, or it comes from a reference that is valid as long as this process exists.
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
        // SAFETY: the caller guarantees the same.
        unsafe { self.0.on_shmem_request() };
    }

    unsafe fn on_shmem_startup(&'static self, (): ()) {
        // SAFETY: the caller guarantees the same.
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
        // SAFETY: this function is called from `shmem_startup_hook`. There is only one process at that time, so the
        // segment list needs no lock. The memory is aligned and remains valid as long as the process exists, and every
        // slot is written before it is read.
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

/// Calls `leave` when this backend exits. This function is called once per process.
pub fn at_exit(leave: fn()) {
    static LEAVE: OnceLock<fn()> = OnceLock::new();
    #[pg_guard]
    unsafe extern "C-unwind" fn call(_code: i32, _argument: pg_sys::Datum) {
        if let Some(leave) = LEAVE.get() {
            leave();
        }
    }
    let _ = LEAVE.set(leave);
    // SAFETY: the library that contains the callback stays loaded as long as this process exists.
    unsafe { pg_sys::on_shmem_exit(Some(call), pg_sys::Datum::from(0)) };
}
