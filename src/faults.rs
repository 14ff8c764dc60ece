//! Faults that the tests switch on one at a time, to check that they are detected. Only a build with the cargo feature
//! `faults` has them, and no release is built with it. The environment variable `SNOWFLAKE_PG_FAULT` of the server
//! names the fault that is on.
#![allow(unsafe_code)]

use std::collections::HashSet;
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use flake::{Drawn, Hybrid, Mark, Nanos, Obstacle, Reading, Reservation, Run, State};
use pgrx::prelude::*;

/// A mistake that a generator could make, or an event that the test of a mistake needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Every session draws from a state of its own.
    StatePerBackend,
    /// The clock counts microseconds as milliseconds.
    MicrosAsMillis,
    /// The clock is read before the state, not after it.
    ClockBeforeState,
    /// A throttled session sleeps without serving interrupts.
    DeafWait,
    /// Nothing is throttled.
    UnboundedLead,
    /// The IDs of a run are counted as consecutive numbers, which changes the node bits.
    RunIntoNodeBits,
    /// Every session may set the worker ID.
    WorkerForEverybody,
    /// A server without a worker ID takes 0.
    DefaultWorker,
    /// A standby issues IDs.
    IssueInRecovery,
    /// The first ID follows the last one.
    SilentWrap,
    /// Decoding counts from the Unix epoch.
    DecodeIgnoresEpoch,
    /// A lock is held while an error is raised.
    PoisonedLock,
    /// IDs are issued by the wall clock, not by generator time.
    WallClock,
    /// Not a mistake: the process loses the processor between two reads of the clocks.
    ReadsApart,
    /// The same, and the reads are considered simultaneous.
    ReadsTrusted,
    /// Not a mistake: a flush takes two seconds.
    SlowDisk,
    /// A mark is published before it is flushed.
    PublishBeforeFlush,
    /// A mark is published when the wait for the synchronous standby is cancelled.
    PublishAfterCancel,
    /// A session that gives up waiting for the synchronous standby discards the mark that it has written.
    PendingForgotten,
    /// A pending mark that is durable is published without a check of the mark that is stored.
    PendingTrusted,
    /// A request for many IDs waits as long as other sessions keep requesting single IDs.
    NeverOverdue,
    /// The server does not check whether the monotonic clock went back.
    RestoreUnnoticed,
    /// The background worker waits for a lock without a limit, and does not react to SIGTERM meanwhile.
    DeafWorker,
    /// A session that cannot extend in advance raises an error.
    RenewalRaises,
    /// Sessions that wait for another one to extend poll every millisecond.
    PollingWait,
    /// A session that gives up extending keeps its claim until the claim expires.
    ClaimKept,
    /// The mark is written below the IDs that are issued, not above them.
    MarkBehind,
    /// The mark is not loaded after a start.
    MarkNotLoaded,
    /// Every forward step of the clock is followed.
    JumpFollowed,
    /// The transaction of CREATE EXTENSION creates the mark.
    MarkMadeByUser,
    /// The counts of a backend are lost when it ends.
    CountsForgotten,
    /// A session that waits shows no wait event.
    HiddenWait,
    /// Every occurrence is logged.
    TalkativeLog,
    /// The elements of an array that a caller passes are copied before they are read.
    ArgumentCopied,
    /// Not a mistake: a cancel request arrives when the elements of such an array begin to be read.
    CancelWhileReading,
    /// The same, but the function checks for the cancel request only after it has read all elements.
    DeafReading,
    /// A session keeps its last ID after `DISCARD`.
    DiscardIgnored,
}

/// True if this fault is switched on.
#[cfg(not(feature = "faults"))]
#[inline(always)]
pub const fn on(_: Fault) -> bool {
    false
}

/// True if this fault is switched on.
#[cfg(feature = "faults")]
pub fn on(fault: Fault) -> bool {
    static SELECTED: OnceLock<String> = OnceLock::new();
    *SELECTED.get_or_init(|| std::env::var("SNOWFLAKE_PG_FAULT").unwrap_or_default()) == format!("{fault:?}")
}

/// [`Fault::PoisonedLock`]: a lock that is held until the IDs are drawn, also if an error is raised meanwhile.
#[inline(always)]
pub fn lock_held_while_drawing() -> Option<std::sync::MutexGuard<'static, ()>> {
    static LOCK: Mutex<()> = Mutex::new(());
    on(Fault::PoisonedLock).then(|| LOCK.lock().expect("no session panics while it holds the lock"))
}

/// [`Fault::ClockBeforeState`]: the clock, which is read before the state.
#[inline(always)]
pub fn clock_read_early(read: impl FnOnce() -> Nanos) -> Option<Nanos> {
    on(Fault::ClockBeforeState).then(read)
}

/// [`Fault::ClockBeforeState`] or [`Fault::WallClock`]: another time instead of generator time.
#[inline(always)]
pub fn time_of_other_clock(time: Nanos, early: Option<Nanos>, offset: u64) -> Nanos {
    match early {
        Some(early) => early.wrapping_add(offset),
        None if on(Fault::WallClock) => since_1970().as_nanos() as Nanos,
        None => time,
    }
}

/// [`Fault::SilentWrap`]: the first ID after the last.
#[inline(always)]
pub fn wrapped(drawn: Result<Drawn, Obstacle>) -> Result<Drawn, Obstacle> {
    match drawn {
        Err(Obstacle::Exhausted) if on(Fault::SilentWrap) => {
            Ok(Drawn { run: Run { first: 1, count: 1 }, renew: false })
        }
        drawn => drawn,
    }
}

/// [`Fault::RunIntoNodeBits`]: the number after the last ID.
#[inline(always)]
pub fn counted_on(id: i64, last: Option<i64>) -> i64 {
    last.filter(|_| on(Fault::RunIntoNodeBits)).map_or(id, |last| last + 1)
}

/// [`Fault::StatePerBackend`]: a state that is not shared.
#[inline(always)]
pub fn state_of_this_backend() -> Option<&'static State> {
    static OWN: OnceLock<State> = OnceLock::new();
    on(Fault::StatePerBackend).then(|| OWN.get_or_init(State::new))
}

/// [`Fault::MarkNotLoaded`] or [`Fault::StatePerBackend`]: nothing was issued.
pub fn forgotten_mark() -> Option<Mark> {
    (on(Fault::MarkNotLoaded) || on(Fault::StatePerBackend)).then_some(Mark::NOTHING_ISSUED)
}

/// [`Fault::IssueInRecovery`]: issuing begins without a mark, because a standby cannot write one.
pub fn begin_without_mark(state: &State, reading: Reading) {
    let generation = state.generation();
    state.load(1, Hybrid::start(reading, 0));
    state.publish(generation, Reservation { ceiling: u64::MAX, renew: u64::MAX }, 0);
}

/// [`Fault::MarkBehind`]: the first word that may not have been issued yet, instead of the ceiling.
pub fn mark_behind(ceiling: u64, next: u64) -> u64 {
    if on(Fault::MarkBehind) { next } else { ceiling }
}

/// [`Fault::MarkBehind`] or [`Fault::PendingTrusted`]: a reservation is published whatever the mark is.
pub fn any_mark_covers() -> bool {
    on(Fault::MarkBehind) || on(Fault::PendingTrusted)
}

/// [`Fault::ArgumentCopied`]: the workers that were found and that are not in a copy of the array.
pub fn searched_in_a_copy(found: &HashSet<i32>, workers: Option<&Array<'_, i32>>) -> Option<HashSet<i32>> {
    on(Fault::ArgumentCopied).then(|| {
        let copied: Vec<i32> = workers.into_iter().flat_map(|workers| workers.iter()).flatten().collect();
        found.iter().filter(|worker| !copied.contains(worker)).copied().collect()
    })
}

/// [`Fault::DeafWait`]: sleeps ten times as long, and responds to no interrupt.
pub fn deaf_wait(time: Duration) -> bool {
    let deaf = on(Fault::DeafWait);
    if deaf {
        std::thread::sleep(time * 10);
    }
    deaf
}

/// [`Fault::MicrosAsMillis`]: a clock that runs a thousand times as fast.
#[inline(always)]
pub fn micros_as_millis(time: Nanos) -> Nanos {
    if on(Fault::MicrosAsMillis) { time * 1_000 } else { time }
}

/// [`Fault::ReadsTrusted`]: reads of the clocks that claim to be simultaneous.
pub fn trusted_reads(apart: Nanos) -> Nanos {
    if on(Fault::ReadsTrusted) { 0 } else { apart }
}

/// [`Fault::JumpFollowed`]: no jump is too large.
pub fn any_jump(max: Nanos) -> Nanos {
    if on(Fault::JumpFollowed) { Nanos::MAX } else { max }
}

/// [`Fault::UnboundedLead`]: no lead is too large.
#[inline(always)]
pub fn any_lead(max: Nanos) -> Nanos {
    if on(Fault::UnboundedLead) { Nanos::MAX / 2 } else { max }
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Takes up to 150 ms if [`Fault::ReadsApart`] or [`Fault::ReadsTrusted`] is on.
pub fn lose_the_processor() {
    if on(Fault::ReadsApart) || on(Fault::ReadsTrusted) {
        std::thread::sleep(Duration::from_millis(u64::from(since_1970().subsec_micros()) % 150));
    }
}

/// A cancel request arrives here, as from a signal, if [`Fault::CancelWhileReading`] or [`Fault::DeafReading`] is on.
pub fn cancel_here() {
    if on(Fault::CancelWhileReading) || on(Fault::DeafReading) {
        // SAFETY: flags of this process, which PostgreSQL's signal handler sets in the same way.
        unsafe {
            pgrx::pg_sys::QueryCancelPending = 1;
            pgrx::pg_sys::InterruptPending = 1;
        }
    }
}

/// Logs that nothing checked for the cancel request of [`cancel_here`].
pub fn cancel_outlived() {
    if on(Fault::CancelWhileReading) || on(Fault::DeafReading) {
        pgrx::log!("snowflake_pg: read to the end");
    }
}

/// [`Fault::PublishAfterCancel`]: true if a cancel request ends the wait for the synchronous standby without an error.
pub fn cancel_ends_wait() -> bool {
    // SAFETY: a plain flag of this process.
    on(Fault::PublishAfterCancel) && unsafe { pgrx::pg_sys::InterruptPending } != 0
}

/// The wait event that is shown, or none if [`Fault::HiddenWait`] is on.
pub fn shown_event(event: u32) -> u32 {
    if on(Fault::HiddenWait) { 0 } else { event }
}
