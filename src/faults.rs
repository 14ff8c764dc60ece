//! Faults that the tests switch on one at a time, to see that they are noticed. Only a build with the cargo feature
//! `faults` has them, which no release has; there the environment variable `SNOWFLAKE_PG_FAULT` of the server names one.

/// A mistake some generator in the field makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Every session draws from a state of its own.
    StatePerBackend,
    /// The clock counts microseconds as milliseconds.
    MicrosAsMillis,
    /// The clock is read before the state, not after.
    ClockBeforeState,
    /// A throttled session sleeps without serving interrupts.
    DeafWait,
    /// Nothing is throttled.
    UnboundedLead,
    /// The IDs of a run are counted up as numbers, through the node bits.
    RunIntoNodeBits,
    /// Every session may set the worker ID.
    WorkerForEverybody,
    /// A server without a worker ID takes 0.
    DefaultWorker,
    /// A standby issues.
    IssueInRecovery,
    /// After the last ID comes the first.
    SilentWrap,
    /// Decoding counts from the Unix epoch.
    DecodeIgnoresEpoch,
    /// A lock is held while an error is raised.
    PoisonedLock,
    /// IDs are issued by the wall clock.
    WallClock,
    /// No fault: the processor is lost between two reads of the clocks.
    ReadsApart,
    /// The same, and the reads are taken for simultaneous.
    ReadsTrusted,
    /// No fault: a flush takes two seconds.
    SlowDisk,
    /// A mark counts before it is flushed.
    PublishBeforeFlush,
    /// A mark counts when the wait for the synchronous standby is cancelled.
    PublishAfterCancel,
    /// The mark is written behind what is issued, not ahead of it.
    MarkBehind,
    /// The mark is not loaded after a start.
    MarkNotLoaded,
    /// Every forward step of the clock is followed.
    JumpFollowed,
    /// CREATE EXTENSION's transaction makes the mark.
    MarkMadeByUser,
    /// A backend takes its counts along when it ends.
    CountsForgotten,
    /// A session that waits does not show it.
    HiddenWait,
    /// The log is told each time.
    TalkativeLog,
}

/// True where this fault is switched on.
#[cfg(not(feature = "faults"))]
#[inline(always)]
pub const fn on(_: Fault) -> bool {
    false
}

/// True where this fault is switched on.
#[cfg(feature = "faults")]
pub fn on(fault: Fault) -> bool {
    use std::sync::OnceLock;
    static SELECTED: OnceLock<String> = OnceLock::new();
    *SELECTED.get_or_init(|| std::env::var("SNOWFLAKE_PG_FAULT").unwrap_or_default()) == format!("{fault:?}")
}

/// Takes up to 150 ms where [`Fault::ReadsApart`] or [`Fault::ReadsTrusted`] is on.
pub fn lose_the_processor() {
    if on(Fault::ReadsApart) || on(Fault::ReadsTrusted) {
        let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        std::thread::sleep(std::time::Duration::from_millis(u64::from(time.subsec_micros()) % 150));
    }
}

/// Takes two seconds, cancellably, where [`Fault::SlowDisk`] is on.
pub fn slow_disk() {
    if on(Fault::SlowDisk) {
        for _ in 0..40 {
            crate::wait::on_latch(crate::wait::Wait::Mark, std::time::Duration::from_millis(50));
        }
    }
}
