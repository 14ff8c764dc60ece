//! The errors that a user can get, as facts. [`crate::message::wording`] turns them into text.
//!
//! Instants are microseconds since the Unix epoch. The text of an argument is in ASCII, and is truncated if it is long. Names of
//! tables and columns are quoted for use in a statement.

use std::time::Duration;

use flake::{Epoch, FormatError, IdFormat, InvalidKey, Layout, LayoutError, PartError, TextError, UuidError};

use crate::message::segment_problem::SegmentProblem;
use crate::message::serial_problem::SerialProblem;

/// What went wrong.
#[derive(Clone, Debug)]
pub enum Error {
    /// The library is not in `shared_preload_libraries`.
    NotPreloaded,
    /// `snowflake_pg.worker_id` is not set.
    WorkerUnset {
        layout: Layout,
        /// True if `snowflake.worker_id`, which has the wrong prefix, is set.
        misnamed: bool,
    },
    /// Both `snowflake_pg.worker_id` and `snowflake_pg.registry` are set.
    WorkerAndRegistry { worker: u32 },
    /// The server is in recovery.
    Standby,
    /// The registry has not assigned a worker ID to this server, or this server has lost it.
    NoWorker { outage: Box<Outage> },
    /// The registry has assigned another worker ID while a function ran.
    WorkerChanged,
    /// The next ID is above the bound of the grant.
    GrantEnded {
        /// This server's worker ID and datacenter ID, as text.
        name: String,
        /// The time of the bound, and the time that this server's clock shows.
        until: i128,
        clock: i128,
        outage: Box<Outage>,
    },
    /// A copy of this server has renewed the grant.
    Fenced {
        /// The worker ID and the datacenter ID, as text.
        name: String,
        /// The host of this server.
        host: String,
        /// The host, the port and the data directory of the copy, as text.
        by: String,
        /// When the copy last renewed the grant.
        seen: i128,
    },
    /// The value of a numeric setting is not a number or does not fit its field.
    Number {
        setting: Setting,
        text: String,
        /// The layout that has the field.
        layout: Layout,
        /// The largest number that fits the field.
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
        /// The part, and the values that would fit.
        error: PartError,
        layout: Layout,
    },
    /// A number is not an ID of the layout.
    NotAnId { id: i64, format: IdFormat, error: FormatError },
    /// A number is negative, so it is not an ID of any layout.
    Negative { id: i64 },
    /// A text is not an ID in the form that a function returns.
    Text { text: String, error: TextError, returned_by: &'static str },
    /// A UUID is not an ID.
    Uuid { uuid: String, error: UuidError },
    /// An instant has no ID in the layout and epoch.
    Instant { at: i128, format: IdFormat },
    /// An interval cannot be used as the length of a partition.
    Step { problem: StepProblem },
    /// A table is not partitioned by ranges of IDs.
    PartitionKey { table: String },
    /// The transaction may not see all existing partitions, so it cannot create the missing ones.
    PartitionTransaction,
    /// A bound of a partition is later than the calendar of this program.
    Calendar { at: i128 },
    /// A name is longer than PostgreSQL allows.
    NameTooLong {
        /// The name, quoted.
        name: String,
        /// True for the name of a partition, false for the name of a column.
        partition: bool,
    },
    /// The time of an ID is outside the range of `timestamptz`.
    TimestampRange,
    /// `count` is out of range.
    Count {
        count: i32,
        max: u64,
        /// Sentences that say how to get more IDs, or why there are no more IDs.
        more: &'static str,
    },
    /// The layout has no consecutive IDs to reserve.
    NotConsecutive { layout: Layout },
    /// No ID has been issued to this session.
    NoCurrentId,
    /// The timestamps of the layout are exhausted.
    Exhausted { format: IdFormat },
    /// The clock is before the epoch.
    ClockBeforeEpoch { epoch: Epoch },
    /// The clock was set back, and the configuration does not allow the server to continue.
    ClockBehind {
        /// How far the clock is behind its earlier time.
        behind: Duration,
    },
    /// The clock cannot be accepted, because it shows a time outside the range of the layout.
    ClockOutside {
        /// The time that the clock shows, in microseconds since the Unix epoch.
        clock: i128,
        format: IdFormat,
    },
    /// Another server on this machine issues IDs with this server's worker ID.
    WorkerInUse {
        /// This server's worker ID and datacenter ID, as text.
        name: String,
        /// The process ID of the other server's postmaster.
        postmaster: i32,
        /// The port on which the other server listens.
        port: i32,
        /// The other server's data directory.
        directory: String,
    },
    /// The high-water mark is missing, or cannot be stored.
    MarkMissing { problem: MarkProblem },
    /// The high-water mark is more than a day ahead of the clock.
    MarkAhead {
        /// True if the mark is the one in the witness, which is above the one in the data directory.
        of_witness: bool,
        /// The time of the first ID that is not below the mark, in microseconds since the Unix epoch.
        mark: i128,
        /// The time that the clock shows, in microseconds since the Unix epoch.
        clock: i128,
        format: IdFormat,
    },
    /// The grant contains only IDs that are far ahead of the clock.
    GrantAhead {
        /// The time of the first ID of the grant, in microseconds since the Unix epoch.
        start: i128,
        /// The time that the clock shows, in microseconds since the Unix epoch.
        clock: i128,
    },
    /// The next ID waits until the mark is durable.
    MarkWaits {
        cause: WaitCause,
        /// When the wait began, in microseconds since the Unix epoch.
        since: i128,
    },
    /// The requested mark is not in the range of the IDs of the layout.
    MarkRange { mark: i64, layout: Layout },
    /// The requested mark is more than a day ahead of the clock.
    MarkTooHigh {
        mark: i64,
        /// The time that the clock shows, in microseconds since the Unix epoch.
        clock: i128,
    },
    /// The transaction might not see all rows of the table that a mark is compared with.
    MarkTransaction,
    /// An argument that must name something is NULL.
    NullArgument {
        argument: &'static str,
        /// The kind of object that the argument must name.
        names: &'static str,
    },
    /// A table does not have the column that should contain IDs.
    NoColumn {
        /// The name of the table, quoted.
        table: String,
        /// The name of the column, quoted.
        column: String,
    },
    /// A column that should contain IDs is not of an integer type.
    NotIntegers {
        /// The name of the column, quoted.
        column: String,
    },
    /// A column has IDs of more servers than can be distinguished.
    ManyNodes {
        /// The name of the column, quoted.
        column: String,
        /// The number of servers that can be distinguished.
        most: usize,
        /// The layout with which the IDs are decoded.
        layout: Layout,
    },
    /// A table does not exist.
    NoTable { table: u32 },
    /// The requested mark is lower than the current mark, and no table shows that lowering the mark is safe.
    MarkLowered {
        mark: i64,
        /// The current mark.
        current: u64,
    },
    /// A table has IDs of this server at or above the requested mark.
    MarkBelowIds {
        mark: i64,
        table: String,
        /// This server's highest ID in the table.
        highest: i64,
    },
    /// The guard of a table refuses a row or cannot work, or a table cannot have a guard.
    Guard {
        /// The table, quoted.
        table: String,
        problem: GuardProblem,
    },
    /// `snowflake_guard_row()` was called by something other than the guard of a table.
    NotAGuard,
    /// There is no number of a segment.
    Segment {
        /// The tag.
        tag: String,
        problem: SegmentProblem,
    },
    /// A series, a serial, or a trigger that numbers rows is wrong.
    Serial(Box<SerialProblem>),
    /// An ID cannot be concealed or revealed.
    Conceal(ConcealProblem),
    /// The server cannot store the progress of a replication origin.
    NoOrigins {
        /// The setting that is 0.
        setting: &'static str,
    },
}

/// What the guard of a table reports.
#[derive(Clone, Debug)]
pub enum GuardProblem {
    /// A replicated row has an ID that only this server can have issued.
    Row {
        id: i64,
        /// When the ID was issued.
        at: i128,
        /// This server's worker ID and datacenter ID, as text.
        name: String,
        /// The first ID with this worker ID that the guard refuses, and its time.
        first: i64,
        since: i128,
    },
    /// The relation is of a kind that cannot have a guard. The text says which.
    Kind { kind: &'static str },
    /// It is not clear which column contains IDs.
    NoKey,
    /// The table has no such column, or no longer.
    NoColumn {
        /// The name of the column, quoted.
        column: String,
        /// True if the guard used the column before.
        renamed: bool,
    },
    /// The column is not of type `bigint`.
    NotBigint {
        /// The name of the column, quoted.
        column: String,
    },
}

/// Why an ID cannot be concealed or revealed.
#[derive(Clone, Copy, Debug)]
pub enum ConcealProblem {
    /// AES has no keys of this length, or the key consists of hexadecimal digits.
    Key(InvalidKey),
    /// The tweak is too long.
    TweakLength { bytes: usize, max: usize },
    /// A negative number cannot be a concealed ID.
    Negative { concealed: i64 },
}

/// What the last heartbeats of this server have brought.
#[derive(Clone, Debug, Default)]
pub struct Outage {
    /// When a heartbeat last succeeded, or `None` if none has succeeded since this server started.
    pub succeeded: Option<i128>,
    /// How many heartbeats have failed since then.
    pub failures: u64,
    /// Why the last heartbeat failed, or an empty text.
    pub cause: String,
    /// What to do about the cause, or an empty text.
    pub hint: String,
    /// True if the registrar has sent no heartbeat for much longer than the time between two heartbeats.
    pub overdue: bool,
}

/// A setting that identifies this server by a number.
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
    /// The text is neither a time in ISO 8601 format nor a number.
    Malformed,
    /// The text is a time without a time zone, which would depend on the setting `TimeZone`.
    NoZone,
    /// The time is not a whole number of milliseconds.
    Fraction,
    /// The time is outside the range from 1970 to 2199.
    Range,
}

/// Why an interval cannot be used as the length of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepProblem {
    /// The interval is zero or negative.
    NotPositive,
    /// The interval has more microseconds than a 64-bit integer can hold.
    TooLong,
    /// The interval is shorter than a tick.
    UnderATick,
    /// The interval combines months with days or hours.
    Mixed,
    /// The interval is not a whole number of minutes, but the names of partitions contain no seconds.
    NotMinutes,
}

/// What a written mark waits for before it becomes durable.
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
    /// The background worker that creates the replication origin has not run.
    NotMade,
    /// There is no free slot for the background worker.
    NoPlace,
    /// The background worker found no free replication state.
    NoFreeState,
    /// The replication origin was dropped.
    Dropped,
    /// The replication origin exists, but has lost its progress.
    NoProgress,
    /// The progress of the replication origin was set back.
    SetBack,
    /// Another session has set up the replication origin. Until that session ends, no other session can change the progress.
    InUse,
}
