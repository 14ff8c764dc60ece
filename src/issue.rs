//! Issuing IDs: the path from a SQL call to the shared state, and what to do when it cannot grant at once.

use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};

use flake::{Drawn, Request, Run, Step};

use crate::failure::Failure;
use crate::faults::{self, Fault};
use crate::identity::{self, Identity};
use crate::stats::{self, Count};
use crate::{clock, extend, guc, load, shmem, wait};

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
            Ok(drawn) => {
                if drawn.renew {
                    extend::renew(identity);
                }
                stats::add(Count::Issued, drawn.run.count);
                return Issued { identity, run: drawn.run };
            }
            Err(obstacle) => {
                if let Some(run) = clear(identity, obstacle, request) {
                    stats::add(Count::Issued, run.count);
                    return Issued { identity, run };
                }
            }
        }
    }
}

/// One try, without a lock, a call into PostgreSQL or an allocation.
#[inline(always)]
fn attempt(identity: &Identity, request: Request) -> Result<Drawn, Option<Step>> {
    let (state, pace) = (shmem::state(), guc::pace());
    if faults::on(Fault::ClockBeforeState) {
        let monotonic = clock::monotonic();
        return state.draw(&identity.limits, pace, request, |offset| monotonic.wrapping_add(offset));
    }
    if faults::on(Fault::WallClock) {
        return state.draw(&identity.limits, pace, request, |_| clock::wall());
    }
    // The clock is read once per attempt.
    let mut attempts = 0;
    let drawn = state.draw(&identity.limits, pace, request, |offset| {
        attempts += 1;
        clock::monotonic().wrapping_add(offset)
    });
    if attempts > 1 {
        stats::add(Count::Retries, attempts - 1);
    }
    match drawn {
        Err(Some(Step::Exhausted)) if faults::on(Fault::SilentWrap) => {
            Ok(Drawn { run: Run { first: 1, count: 1 }, renew: false })
        }
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

/// Removes what keeps the state from granting a request, or raises the error that says why it cannot be removed. Returns
/// words where it could draw them itself.
#[cold]
fn clear(identity: &Identity, obstacle: Option<Step>, request: Request) -> Option<Run> {
    match obstacle {
        None => load::load(identity),
        Some(Step::Wait(time)) => wait::throttled(time),
        Some(Step::Extend(word)) => {
            let time = extend::extend_to(identity, word)?;
            // At the time the reservation was made for: where a disk or a standby takes longer than a window, the words would
            // be over before they could be issued, and this session would extend for ever.
            let drawn = shmem::state().draw(&identity.limits, guc::pace(), request, |_| time);
            return drawn.ok().map(|drawn| drawn.run);
        }
        Some(Step::Exhausted) => Failure::Exhausted { scheme: identity.scheme }.raise(),
        Some(Step::BeforeEpoch) => Failure::ClockBeforeEpoch { epoch: identity.scheme.epoch }.raise(),
        // What is issued is no obstacle.
        Some(Step::Issue(_)) => Failure::Unreachable("an ID that was issued and not returned").raise(),
    }
    None
}
