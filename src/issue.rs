//! Issuing IDs: the path from a SQL call to the shared state, and what to do when it cannot grant at once.

use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};

use flake::{NO_CEILING, Request, Run, Step};
use pgrx::pg_sys;

use crate::failure::Failure;
use crate::faults::{self, Fault};
use crate::identity::{self, Identity};
use crate::{clock, guc, shmem, wait};

/// IDs that are this session's alone, in the order in which they were issued.
pub struct Issued {
    identity: &'static Identity,
    run: Run,
}

/// The last ID issued to this session, negative before the first. An atomic only because statics must be; each session
/// is a process with one thread.
static CURRENT: AtomicI64 = AtomicI64::new(-1);

/// Held by [`Fault::PoisonedLock`] only.
static LOCK: Mutex<()> = Mutex::new(());

/// Issues the IDs of one request: the lock-free path first, and whatever stands in its way until it is granted.
#[inline(always)]
pub fn draw(request: Request) -> Issued {
    let identity = identity::get();
    let _held = faults::on(Fault::PoisonedLock).then(|| LOCK.lock().expect("nobody panics while holding it"));
    loop {
        match attempt(identity, request) {
            Ok(run) => return Issued { identity, run },
            Err(obstacle) => clear(identity, obstacle),
        }
    }
}

/// One try, without a lock, a call into PostgreSQL or an allocation.
#[inline(always)]
fn attempt(identity: &Identity, request: Request) -> Result<Run, Option<Step>> {
    let (state, pace) = (shmem::state(), guc::pace());
    if faults::on(Fault::ClockBeforeState) {
        let now = clock::now();
        return state.draw(&identity.limits, pace, request, || now);
    }
    match state.draw(&identity.limits, pace, request, clock::now) {
        Err(Some(Step::Exhausted)) if faults::on(Fault::SilentWrap) => Ok(Run { first: 1, count: 1 }),
        drawn => drawn,
    }
}

/// The last ID issued to this session.
pub fn current() -> Option<i64> {
    Some(CURRENT.load(Ordering::Relaxed)).filter(|id| *id >= 0)
}

impl Issued {
    /// Takes the next ID; `None` when all are taken.
    #[inline]
    pub fn take(&mut self) -> Option<i64> {
        if self.run.count == 0 {
            return None;
        }
        let id = match current() {
            Some(last) if faults::on(Fault::RunIntoNodeBits) => last + 1,
            _ => self.identity.stamp.id(self.run.first),
        };
        self.run.first += 1;
        self.run.count -= 1;
        CURRENT.store(id, Ordering::Relaxed);
        Some(id)
    }

    /// Takes all that are left as one block and returns its first ID.
    pub fn take_block(self) -> i64 {
        let stamp = &self.identity.stamp;
        CURRENT.store(stamp.id(self.run.last()), Ordering::Relaxed);
        stamp.id(self.run.first)
    }
}

/// Removes what keeps the state from granting a request, or raises the error that says why it cannot be removed.
#[cold]
fn clear(identity: &Identity, obstacle: Option<Step>) {
    match obstacle {
        None => load(identity),
        Some(Step::Wait(time)) => wait::throttled(time),
        Some(Step::Exhausted) => Failure::Exhausted { scheme: identity.scheme }.raise(),
        Some(Step::BeforeEpoch) => Failure::ClockBeforeEpoch { epoch: identity.scheme.epoch }.raise(),
        // There is no ceiling to extend, and what is issued is no obstacle.
        Some(Step::Extend(_) | Step::Issue(_)) => Failure::Unreachable("a ceiling below the end").raise(),
    }
}

/// Lets issuing begin, where this server may issue at all.
#[allow(unsafe_code)]
fn load(identity: &Identity) {
    if !identity.worker_set {
        Failure::WorkerUnset { layout: identity.scheme.layout }.raise();
    }
    // SAFETY: reads shared memory that every backend is attached to.
    if unsafe { pg_sys::RecoveryInProgress() } && !faults::on(Fault::IssueInRecovery) {
        Failure::Standby.raise();
    }
    shmem::state().load(1, NO_CEILING);
}
