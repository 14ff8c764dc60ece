//! Faults that the tests switch on, to check that the tests detect each fault. Only a build with the Cargo feature `faults`
//! contains these faults, and no release is built with this feature. The server's environment variable `SNOWFLAKE_PG_FAULT` names
//! the fault that is switched on. If a fault shows only after a different one, it names both, separated by a space.
#![allow(unsafe_code)]

use std::collections::HashSet;
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use flake::fleet::{Member, MemberIdentity, Point, Record};
use flake::{Block, Drawn, GeneratorClock, Mark, Nanos, Obstacle, Reading, Reservation, Run, Segment, State};
use pgrx::prelude::*;

/// A mistake that a generator could make, or an event that the test for a mistake needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Every session draws IDs from its own state instead of the shared state.
    StatePerBackend,
    /// The clock counts microseconds as milliseconds.
    MicrosAsMillis,
    /// The clock is read before the state instead of after it.
    ClockBeforeState,
    /// A throttled session sleeps without serving interrupts.
    DeafWait,
    /// Nothing is throttled.
    UnboundedLead,
    /// The IDs in a run are counted as consecutive numbers, which changes the node bits.
    RunIntoNodeBits,
    /// Every session is allowed to change the worker ID.
    WorkerForEverybody,
    /// A server without a worker ID uses worker ID 0.
    DefaultWorker,
    /// A standby issues IDs.
    IssueInRecovery,
    /// After the last ID of the layout, the server begins again with the first ID.
    SilentWrap,
    /// Decoding counts from the Unix epoch.
    DecodeIgnoresEpoch,
    /// A lock is held while an error is raised.
    PoisonedLock,
    /// IDs are issued according to the wall clock instead of generator time.
    WallClock,
    /// Not a mistake: The process loses the processor between two clock reads.
    ReadsApart,
    /// The process loses the processor between two clock reads, but the reads are considered simultaneous.
    ReadsTrusted,
    /// Not a mistake: A flush takes two seconds.
    SlowDisk,
    /// Not a mistake: A flush takes six seconds.
    StuckDisk,
    /// A mark is published before it is flushed.
    PublishBeforeFlush,
    /// A mark is published even though the wait for the synchronous standby was cancelled.
    PublishAfterCancel,
    /// A session that gives up waiting for the synchronous standby discards the mark that it has written.
    PendingForgotten,
    /// A pending mark that is durable is published without checking the stored mark.
    PendingTrusted,
    /// A request for many IDs waits as long as other sessions keep requesting single IDs.
    NeverOverdue,
    /// A session that has waited for an ID leaves no IDs to other sessions that wait.
    GreedySessions,
    /// The server does not look whether the file of the witness still exists.
    RemovalUnnoticed,
    /// The server does not check whether the monotonic clock went back.
    RestoreUnnoticed,
    /// The background worker waits for a lock without a timeout, and does not react to SIGTERM while it waits.
    DeafWorker,
    /// A session that cannot extend the reservation in advance raises an error.
    RenewalRaises,
    /// Sessions that wait for another session to extend the reservation poll every millisecond.
    PollingWait,
    /// A session that gives up extending the reservation keeps its claim until the claim expires.
    ClaimKept,
    /// The mark is written below the issued IDs instead of above them.
    MarkBehind,
    /// The mark is not loaded after a server start.
    MarkNotLoaded,
    /// IDs follow every forward step of the clock.
    JumpFollowed,
    /// The transaction that runs CREATE EXTENSION creates the mark.
    MarkMadeByUser,
    /// A backend's counts are lost when the backend ends.
    CountsForgotten,
    /// A session that waits shows no wait event.
    HiddenWait,
    /// Every occurrence of an event is logged.
    TalkativeLog,
    /// A text argument, and the elements of an array argument, are copied before they are read.
    ArgumentCopied,
    /// Not a mistake: A cancel request arrives when a function begins to read the elements of an array argument.
    CancelWhileReading,
    /// A cancel request arrives when a function begins to read the elements of an array argument, but the function checks for
    /// cancel requests only after it has read all elements.
    DeafReading,
    /// A session keeps its last ID after `DISCARD`.
    DiscardIgnored,
    /// Defaults of all utility statements are treated like those of a COPY.
    CopyEverywhere,
    /// A function that is put into the defaults of a COPY does not check the privilege of the function that it replaces.
    CopyUnchecked,
    /// A renewal is sent before its nonce is in the witness.
    NonceForgotten,
    /// A renewal that was not answered is sent again with another nonce.
    NonceReplaced,
    /// An answer of the registry is used even though its COMMIT gave a warning.
    WarningTrusted,
    /// Not a mistake: Looking up the addresses of a host takes 20 seconds.
    SlowLookup,
    /// Not a mistake: Every host has the address 127.0.0.2, which comes before its other addresses.
    DeadAddress,
    /// The postmaster does not lock the witness of a server with a registry.
    WitnessShared,
    /// A session does not check whether the worker ID has changed.
    AssignmentIgnored,
    /// A server that gets a worker ID for its spare one does not unload the spare one first.
    SpareKept,
    /// IDs are issued above the bound of the grant.
    BoundIgnored,
    /// Issuing begins below the start of the grant, and below what the witness contains.
    StartIgnored,
    /// A guard refuses the IDs of this server's worker ID that are not in its grant.
    GrantUnguarded,
    /// A guard refuses the IDs that this server had issued before the guard was created.
    GuardFromZero,
    /// A guard refuses the rows that a trigger on this server inserts while it applies a replicated row.
    GuardMistakesOwn,
    /// An answer of the registry is used before its COMMIT.
    CommitIgnored,
    /// A server goes on in its blocks of a segment that was dropped and created again.
    GenerationIgnored,
    /// Every session draws from its own copy of a block.
    BlockPerSession,
    /// The registrar serves tags that may not exist in turn with the others, and they take the slots of the others.
    NewTagsInTurn,
    /// The entrance of tags that may not exist belongs to the role that comes first.
    EntranceOfFirst,
    /// A session waits for two seconds, instead of minutes, until its tag is looked up.
    ShortPatience,
    /// Any role that can take numbers of a series begins periods that ended long ago.
    PastByAnyRole,
    /// The privileges of the owner of a numbered table are not checked.
    TableOwnerTrusted,
    /// A trigger that numbers rows names whichever relation has the name of the series at last.
    SeriesByName,
    /// A series draws from the tag that its trigger names, even if its owner may not draw from it.
    TagTrusted,
    /// IDs are concealed and revealed without the tweak.
    TweakIgnored,
}

/// Returns true if this fault is switched on.
#[cfg(not(feature = "faults"))]
#[inline(always)]
pub const fn on(_: Fault) -> bool {
    false
}

/// Returns true if this fault is switched on.
#[cfg(feature = "faults")]
pub fn on(fault: Fault) -> bool {
    static SELECTED: OnceLock<String> = OnceLock::new();
    let selected = SELECTED.get_or_init(|| std::env::var("SNOWFLAKE_PG_FAULT").unwrap_or_default());
    let fault = format!("{fault:?}");
    selected.split(' ').any(|name| name == fault)
}

/// Waits if [`Fault::SlowLookup`] is on.
pub fn slow_lookup() {
    if on(Fault::SlowLookup) {
        std::thread::sleep(Duration::from_secs(20));
    }
}

/// Returns the first address of a host if [`Fault::DeadAddress`] is on.
pub fn dead_address() -> Option<String> {
    on(Fault::DeadAddress).then(|| "127.0.0.2".into())
}

/// Returns a lock for [`Fault::PoisonedLock`]. The lock is held until the IDs are drawn, even if an error is raised in the
/// meantime.
#[inline(always)]
pub fn lock_held_while_drawing() -> Option<std::sync::MutexGuard<'static, ()>> {
    static LOCK: Mutex<()> = Mutex::new(());
    on(Fault::PoisonedLock).then(|| LOCK.lock().expect("no session panics while it holds the lock"))
}

/// Reads the clock before the state is read, if [`Fault::ClockBeforeState`] is on.
#[inline(always)]
pub fn clock_read_early(read: impl FnOnce() -> Nanos) -> Option<Nanos> {
    on(Fault::ClockBeforeState).then(read)
}

/// Returns a different time instead of generator time if [`Fault::ClockBeforeState`] or [`Fault::WallClock`] is on.
#[inline(always)]
pub fn time_of_other_clock(time: Nanos, early: Option<Nanos>, offset: u64) -> Nanos {
    match early {
        Some(early) => early.wrapping_add(offset),
        None if on(Fault::WallClock) => since_1970().as_nanos() as Nanos,
        None => time,
    }
}

/// Returns the first ID after the last ID of the layout if [`Fault::SilentWrap`] is on.
#[inline(always)]
pub fn wrapped(drawn: Result<Drawn, Obstacle>) -> Result<Drawn, Obstacle> {
    match drawn {
        Err(Obstacle::Exhausted) if on(Fault::SilentWrap) => {
            Ok(Drawn { run: Run { first: 1, count: 1 }, renew: false })
        }
        drawn => drawn,
    }
}

/// Returns the last ID plus 1 instead of `id` if [`Fault::RunIntoNodeBits`] is on.
#[inline(always)]
pub fn counted_on(id: i64, last: Option<i64>) -> i64 {
    last.filter(|_| on(Fault::RunIntoNodeBits)).map_or(id, |last| last + 1)
}

/// Returns a state that is not shared if [`Fault::StatePerBackend`] is on.
#[inline(always)]
pub fn state_of_this_backend() -> Option<&'static State> {
    static OWN: OnceLock<State> = OnceLock::new();
    on(Fault::StatePerBackend).then(|| OWN.get_or_init(State::new))
}

/// Returns a mark that means that no ID has been issued if [`Fault::MarkNotLoaded`] or [`Fault::StatePerBackend`] is on.
pub fn forgotten_mark() -> Option<Mark> {
    (on(Fault::MarkNotLoaded) || on(Fault::StatePerBackend)).then_some(Mark::NOTHING_ISSUED)
}

/// Begins issuing IDs without a mark for [`Fault::IssueInRecovery`], because a standby cannot write a mark.
pub fn begin_without_mark(state: &State, reading: Reading) {
    let generation = state.generation();
    state.load(generation, 1, GeneratorClock::start(reading, 0));
    state.publish(generation, Reservation { ceiling: u64::MAX, renew: u64::MAX }, 0);
}

/// Returns the first word that may not have been issued yet instead of the ceiling if [`Fault::MarkBehind`] is on.
pub fn mark_behind(ceiling: u64, next: u64) -> u64 {
    if on(Fault::MarkBehind) { next } else { ceiling }
}

/// Returns true if [`Fault::MarkBehind`] or [`Fault::PendingTrusted`] is on. A reservation is then published regardless of the
/// stored mark.
pub fn any_mark_covers() -> bool {
    on(Fault::MarkBehind) || on(Fault::PendingTrusted)
}

/// Returns the workers that were found but are not in a copy of the array if [`Fault::ArgumentCopied`] is on.
pub fn searched_in_a_copy(found: &HashSet<i32>, workers: Option<&Array<'_, i32>>) -> Option<HashSet<i32>> {
    on(Fault::ArgumentCopied).then(|| {
        let copied: Vec<i32> = workers.into_iter().flat_map(|workers| workers.iter()).flatten().collect();
        found.iter().filter(|worker| !copied.contains(worker)).copied().collect()
    })
}

/// Copies a text argument if [`Fault::ArgumentCopied`] is on.
#[inline(always)]
pub fn argument_copied(text: &[u8]) -> &[u8] {
    if on(Fault::ArgumentCopied) {
        std::hint::black_box(text.to_vec());
    }
    text
}

/// Sleeps ten times as long without responding to interrupts if [`Fault::DeafWait`] is on. Returns true if the fault is on.
pub fn deaf_wait(time: Duration) -> bool {
    let deaf = on(Fault::DeafWait);
    if deaf {
        std::thread::sleep(time * 10);
    }
    deaf
}

/// Makes the clock run a thousand times as fast if [`Fault::MicrosAsMillis`] is on.
#[inline(always)]
pub fn micros_as_millis(time: Nanos) -> Nanos {
    if on(Fault::MicrosAsMillis) { time * 1_000 } else { time }
}

/// Claims that the clock reads are simultaneous if [`Fault::ReadsTrusted`] is on.
pub fn trusted_reads(apart: Nanos) -> Nanos {
    if on(Fault::ReadsTrusted) { 0 } else { apart }
}

/// Returns a limit that no jump exceeds if [`Fault::JumpFollowed`] is on.
pub fn any_jump(max: Nanos) -> Nanos {
    if on(Fault::JumpFollowed) { Nanos::MAX } else { max }
}

/// Returns a limit that no lead exceeds if [`Fault::UnboundedLead`] is on.
#[inline(always)]
pub fn any_lead(max: Nanos) -> Nanos {
    if on(Fault::UnboundedLead) { Nanos::MAX / 2 } else { max }
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Sleeps for up to 150 ms if [`Fault::ReadsApart`] or [`Fault::ReadsTrusted`] is on.
pub fn lose_the_processor() {
    if on(Fault::ReadsApart) || on(Fault::ReadsTrusted) {
        std::thread::sleep(Duration::from_millis(u64::from(since_1970().subsec_micros()) % 150));
    }
}

/// Simulates a cancel request that arrives as a signal, if [`Fault::CancelWhileReading`] or [`Fault::DeafReading`] is on.
pub fn cancel_here() {
    if on(Fault::CancelWhileReading) || on(Fault::DeafReading) {
        // SAFETY: these are flags of this process, which PostgreSQL's signal handler sets in the same way.
        unsafe {
            pgrx::pg_sys::QueryCancelPending = 1;
            pgrx::pg_sys::InterruptPending = 1;
        }
    }
}

/// Logs that nothing checked for the cancel request from [`cancel_here`].
pub fn cancel_outlived() {
    if on(Fault::CancelWhileReading) || on(Fault::DeafReading) {
        pgrx::log!("snowflake_pg: read to the end");
    }
}

/// Returns true if [`Fault::PublishAfterCancel`] is on and a cancel request has arrived. The request then ends the wait for the
/// synchronous standby without an error.
pub fn cancel_ends_wait() -> bool {
    // SAFETY: the flag is a plain variable of this process.
    on(Fault::PublishAfterCancel) && unsafe { pgrx::pg_sys::InterruptPending } != 0
}

/// Forgets the nonce of a renewal that was not answered if [`Fault::NonceReplaced`] is on.
pub fn forget_nonce(member: &mut Member, identity: MemberIdentity) {
    let pending = member.record().copied().filter(|record| on(Fault::NonceReplaced) && record.pending.is_some());
    if let Some(record) = pending {
        *member = Member::start(identity, Some(Record { pending: None, ..record }), Point::ZERO);
    }
}

/// Draws from a segment of this process if [`Fault::BlockPerSession`] is on. It begins with what is left of the shared one.
pub fn drawn_privately(shared: &Segment) -> Option<i64> {
    static OWN: OnceLock<Segment> = OnceLock::new();
    if !on(Fault::BlockPerSession) {
        return None;
    }
    let own = OWN.get_or_init(|| {
        let (segment, left) = (Segment::default(), shared.left().current);
        segment.open(1, Block { first: left.first, length: left.count.max(1), fetch_below: 1 });
        segment
    });
    own.draw(1).ok().map(|drawn| drawn.number)
}

/// Returns an empty tweak if [`Fault::TweakIgnored`] is on.
#[inline(always)]
pub fn tweak_used(tweak: &[u8]) -> &[u8] {
    if on(Fault::TweakIgnored) { &[] } else { tweak }
}

/// Returns the wait event to show, or 0 if [`Fault::HiddenWait`] is on.
pub fn shown_event(event: u32) -> u32 {
    if on(Fault::HiddenWait) { 0 } else { event }
}
