//! Deliberate faults. Tests switch them on to verify that other tests detect them. The faults exist only in builds with
//! the Cargo feature `faults`, which no release uses. The server's environment variable `SNOWFLAKE_PG_FAULT` names the
//! fault to switch on. If a fault has an effect only together with a different one, the variable names both, separated
//! by a space.
//!
//! The effects of the faults are implemented in this folder, with one file for each folder of `src/`. Other files only
//! pass values through functions in this folder or check whether a fault is [`on`]. The files that draw an ID do
//! neither. In a build with faults, they use a [`State`] that contains faults.

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
pub use functions::{named, reading_array, tweak_used, without_epoch};
pub use generator::{any_mark_covers, counted_on, durable_early, floor, loaded_mark, mark_behind, outlasts_cancel};
pub use pg::{argument_copied, dead_address};
pub use segments::drawn_privately;
pub use server::{deaf_wait, micros_as_millis, read_apart, shown_event};
pub use workers::forget_nonce;

/// The generator's state. In a build with faults, it contains faults.
#[cfg(not(feature = "faults"))]
pub use flake::State;
#[cfg(feature = "faults")]
pub use state::State;

/// A mistake in the server, or an event that is needed to test for a mistake.
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
    /// No session is throttled.
    UnboundedLead,
    /// The IDs of a run are counted as consecutive numbers, which changes the node bits.
    RunIntoNodeBits,
    /// Every session is allowed to change the worker ID.
    WorkerForEverybody,
    /// A server without a worker ID uses worker ID 0.
    DefaultWorker,
    /// A standby issues IDs.
    IssueInRecovery,
    /// After the last ID of the layout, the server restarts at the first ID.
    SilentWrap,
    /// Decoding uses the Unix epoch.
    DecodeIgnoresEpoch,
    /// A lock is held while an error is raised.
    PoisonedLock,
    /// The times in IDs come from the wall clock instead of generator time.
    WallClock,
    /// Not a mistake: The process is suspended between two clock reads.
    ReadsApart,
    /// The process is suspended between two clock reads, but the reads are considered simultaneous.
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
    /// A request for many IDs waits for as long as other sessions keep requesting single IDs.
    NeverOverdue,
    /// A session that has waited for an ID leaves no IDs for other waiting sessions.
    GreedySessions,
    /// The server does not check whether the witness file still exists.
    RemovalUnnoticed,
    /// The server does not check whether the monotonic clock has gone backward.
    RestoreUnnoticed,
    /// The background worker waits for a lock without a timeout and does not react to SIGTERM during the wait.
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
    /// A message is logged while the mark is locked.
    LoggedLocked,
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
    /// A text argument and the elements of an array argument are copied before they are read.
    ArgumentCopied,
    /// Not a mistake: A cancel request arrives when a function starts to read the elements of an array argument.
    CancelWhileReading,
    /// A cancel request arrives when a function starts to read the elements of an array argument, but the function
    /// checks for cancel requests only after it has read all elements.
    DeafReading,
    /// A session keeps its last ID after `DISCARD`.
    DiscardIgnored,
    /// The defaults of all utility statements are treated like those of COPY.
    CopyEverywhere,
    /// A function that is substituted in the defaults of COPY does not check the privilege for the function that it
    /// replaces.
    CopyUnchecked,
    /// A renewal is sent before its nonce is stored in the witness.
    NonceForgotten,
    /// A renewal that was not answered is sent again with a different nonce.
    NonceReplaced,
    /// An answer from the registry is used even though its COMMIT returned a warning.
    WarningTrusted,
    /// Not a mistake: Looking up the addresses of a host takes 20 seconds.
    SlowLookup,
    /// Not a mistake: Every host has the address 127.0.0.2, which comes before its other addresses.
    DeadAddress,
    /// The postmaster does not lock the witness of a server that uses a registry.
    WitnessShared,
    /// A session does not check whether the worker ID has changed.
    AssignmentIgnored,
    /// A server that exchanges its spare worker ID for another one does not unload the spare one first.
    SpareKept,
    /// IDs are issued above the bound of the grant.
    BoundIgnored,
    /// The first ID can be below the start of the grant, and below the mark in the witness.
    StartIgnored,
    /// A guard refuses IDs that have this server's worker ID but are outside its grant.
    GrantUnguarded,
    /// A guard refuses IDs that this server issued before the guard was created.
    GuardFromZero,
    /// A guard refuses rows that a trigger on this server inserts while it applies a replicated row.
    GuardMistakesOwn,
    /// An answer from the registry is used before its COMMIT.
    CommitIgnored,
    /// A server continues to use its blocks of a segment that was dropped and created again.
    GenerationIgnored,
    /// Every session draws from its own copy of a block.
    BlockPerSession,
    /// The registrar serves tags that may not exist like any other tags, so they occupy slots that other tags need.
    NewTagsInTurn,
    /// The first role that requests tags that may not exist occupies the entire entrance, and keeps it.
    EntranceOfFirst,
    /// The least recently used segment is closed, whichever role draws from it.
    SlotsInTurn,
    /// Not a mistake: A session waits for two seconds instead of minutes for its tag to be looked up, and a segment is
    /// idle after a second instead of a minute.
    ShortPatience,
    /// Any role that can draw numbers from a series can create periods that ended long ago.
    PastByAnyRole,
    /// The privileges of the owner of a numbered table are not checked.
    TableOwnerTrusted,
    /// A trigger that numbers rows refers to whichever relation currently has the name of the series.
    SeriesByName,
    /// Not a mistake: A session waits for advisory lock 1 before it runs a statement that names a table.
    SlowName,
    /// A table is read or written by its name, whichever table currently has it.
    NameTrusted,
    /// A superuser reads tables of other roles with its own privileges.
    ReadAsCaller,
    /// Settings that code of a different role changes keep their new values.
    SettingsKept,
    /// A series draws from the tag that its trigger names, even if its owner is not allowed to draw from that tag.
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
