//! Everything that can go wrong for a user, as facts: the wording is [`crate::message::wording`]'s.
//!
//! Instants are microseconds since the Unix epoch. The text of an argument is in ASCII, and cut if it is long. Names of tables and
//! columns are quoted.

use std::time::Duration;

use flake::{Epoch, FormatError, IdFormat, Layout, LayoutError, PartError, TextError};

/// What went wrong.
#[derive(Clone, Debug)]
pub enum Error {
    /// The library is not in `shared_preload_libraries`.
    NotPreloaded,
    /// `snowflake_pg.worker_id` is not set.
    WorkerUnset {
        layout: Layout,
        /// True if `snowflake.worker_id`, with the wrong prefix, is set.
        misnamed: bool,
    },
    /// The server is in recovery.
    Standby,
    /// A numeric setting is no number or does not fit.
    Number {
        setting: Setting,
        text: String,
        /// The layout whose field it must fit.
        layout: Layout,
        /// The largest number that fits.
        max: u64,
    },
    /// `snowflake_pg.layout` is not a layout.
    Layout { text: String, error: LayoutError },
    /// `snowflake_pg.epoch` is not an epoch.
    Epoch { text: String, problem: EpochProblem },
    /// A function's argument is not a layout.
    LayoutArgument { text: String, error: LayoutError },
    /// A function's argument is not an epoch.
    EpochArgument { at: i128, problem: EpochProblem },
    /// A part of an ID does not fit its field.
    Part {
        /// Which part, and what would fit.
        error: PartError,
        layout: Layout,
    },
    /// A number is not an ID of the layout.
    NotAnId { id: i64, format: IdFormat, error: FormatError },
    /// A number is negative, and so no ID of any layout.
    Negative { id: i64 },
    /// A text is not an ID.
    Text { text: String, error: TextError },
    /// An instant has no ID in the layout and epoch.
    Instant { at: i128, format: IdFormat },
    /// An interval is not the length of a partition.
    Step { problem: StepProblem },
    /// A table is not partitioned by ranges of IDs.
    PartitionKey { table: String },
    /// Partitions are to be made in a transaction that may not see all there are.
    PartitionTransaction,
    /// A bound of a partition lies beyond the calendar.
    Calendar { at: i128 },
    /// A name is longer than PostgreSQL's may be.
    NameTooLong {
        /// The name, quoted.
        name: String,
    },
    /// The time of an ID is beyond the range of `timestamptz`.
    TimestampRange,
    /// `count` is out of range.
    Count {
        count: i32,
        max: u64,
        /// Why not more, or how to get more: a sentence.
        more: &'static str,
    },
    /// The layout has no consecutive IDs to reserve.
    NotConsecutive { layout: Layout },
    /// This session has not been issued an ID.
    NoCurrentId,
    /// The timestamp field is used up.
    Exhausted { format: IdFormat },
    /// The clock is before the epoch.
    ClockBeforeEpoch { epoch: Epoch },
    /// The clock was set back, and the configuration forbids to go on.
    ClockBehind {
        /// How far it is from where it was.
        behind: Duration,
    },
    /// The clock to accept shows a time for which the layout has no IDs.
    ClockOutside {
        /// What it shows, in microseconds since the Unix epoch.
        clock: i128,
        format: IdFormat,
    },
    /// The high-water mark is nowhere to be found, or cannot be kept.
    MarkMissing { problem: MarkProblem },
    /// The high-water mark lies more than a day ahead of the clock.
    MarkAhead {
        /// The time of the first ID that is not below it, in microseconds since the Unix epoch.
        mark: i128,
        /// What the clock shows, likewise.
        clock: i128,
        format: IdFormat,
    },
    /// The next ID waits until the mark is durable.
    MarkWaits {
        cause: WaitCause,
        /// Since when, in microseconds since the Unix epoch.
        since: i128,
    },
    /// A mark that is asked for is no ID of the layout.
    MarkRange { mark: i64, layout: Layout },
    /// A mark that is asked for lies more than a day ahead of the clock.
    MarkTooHigh {
        mark: i64,
        /// What the clock shows, in microseconds since the Unix epoch.
        clock: i128,
    },
    /// A mark is to be compared with a table in a transaction that may not see all of its rows.
    MarkTransaction,
    /// An argument that must name something is NULL.
    NullArgument {
        argument: &'static str,
        /// What it must name.
        names: &'static str,
    },
    /// A column that is to have IDs is of another type.
    NotIntegers {
        /// Its name, quoted.
        column: String,
    },
    /// A column has numbers of more servers than are told apart.
    ManyNodes {
        /// Its name, quoted.
        column: String,
        /// How many are.
        most: usize,
        /// The layout that they are read with.
        layout: Layout,
    },
    /// A table does not exist.
    NoTable { table: u32 },
    /// A mark is to be lowered, and nothing says that this is safe.
    MarkLowered {
        mark: i64,
        /// The mark that is.
        current: u64,
    },
    /// A mark is to be lowered to where a table has IDs of this server.
    MarkBelowIds {
        mark: i64,
        table: String,
        /// The highest ID of this server in it.
        highest: i64,
    },
    /// The server can keep no progress of a replication origin.
    NoOrigins {
        /// The setting that is 0.
        setting: &'static str,
    },
}

/// A setting that numbers this server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// `snowflake_pg.datacenter_id`
    Datacenter,
    /// `snowflake_pg.worker_id`
    Worker,
}

/// Why a text is not an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EpochProblem {
    /// Neither ISO 8601 nor a number.
    Malformed,
    /// A time without a zone, whose meaning would depend on the setting `timezone`.
    NoZone,
    /// Finer than a millisecond.
    Fraction,
    /// Outside 1970 to 2199.
    Range,
}

/// Why an interval is not the length of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepProblem {
    /// Zero, or negative in one of its parts.
    NotPositive,
    /// More microseconds than there are.
    TooLong,
    /// Shorter than a tick.
    UnderATick,
    /// Months and days or hours together.
    Mixed,
    /// Not a whole number of minutes, which names of partitions go down to.
    NotMinutes,
}

/// What keeps a mark that was written from being durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitCause {
    /// The server's disk.
    Disk,
    /// The synchronous standby.
    Standby,
}

/// Why there is no high-water mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkProblem {
    /// The background worker that makes the replication origin has not run.
    NotMade,
    /// There is no slot for the background worker.
    NoPlace,
    /// It found no free replication state.
    NoFreeState,
    /// The replication origin was there and is not.
    Dropped,
    /// The replication origin is there and has lost its progress.
    NoProgress,
    /// Somebody else has set its progress back.
    SetBack,
    /// Another session has set up the replication origin. Until it ends, no other session can change the progress.
    InUse,
}
