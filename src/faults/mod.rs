//! Faults that the tests switch on, to check that the tests detect each fault. Only a build with the Cargo feature `faults`
//! contains these faults, and no release is built with this feature. The server's environment variable `SNOWFLAKE_PG_FAULT` names
//! the fault that is switched on. If a fault shows only after a different one, it names both, separated by a space.
//!
//! What a fault does is in this folder, with one file for each folder of `src/`. The other files only call a function of this folder
//! where a value enters or leaves them, or ask whether a fault is [`on`]. The files that draw an ID do not even do that: in a build with
//! faults, the generator's state is a [`State`] with faults.

mod config;
mod functions;
mod generator;
mod pg;
mod segments;
mod server;
#[cfg(feature = "faults")]
mod state;
mod workers;

#[cfg(feature = "faults")]
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use config::{any_jump, any_lead};
pub use functions::{reading_array, tweak_used, without_epoch};
pub use generator::{any_mark_covers, counted_on, durable_early, floor, loaded_mark, mark_behind, outlasts_cancel};
pub use pg::{argument_copied, dead_address};
pub use segments::drawn_privately;
pub use server::{deaf_wait, micros_as_millis, read_apart, shown_event};
pub use workers::forget_nonce;

/// The generator's state. In a build with faults, it has faults.
#[cfg(not(feature = "faults"))]
pub use flake::State;
#[cfg(feature = "faults")]
pub use state::State;

/// A mistake that a generator could make, or an event that the test for a mistake needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "faults"), allow(dead_code))] // Those of the state are not compiled.
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

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
