//! The only place that maps an error to its SQLSTATE, message, detail and hint.
//!
//! Messages follow PostgreSQL's style guide: the message says what happened, the detail gives facts, and the hint gives advice.

use flake::{FormatError, PartError};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;

use crate::message::conceal;
use crate::message::error::Error;
use crate::message::fleet;
use crate::message::guard;
use crate::message::pages;
use crate::message::reasons;
use crate::message::segment;
use crate::message::serial;
use crate::pg::{relation, timestamp};

/// An error or a message in the form that PostgreSQL reports.
pub struct Report {
    /// The SQLSTATE.
    pub code: PgSqlErrorCode,
    /// What happened.
    pub message: String,
    /// Facts, or an empty string.
    pub detail: String,
    /// Advice, or an empty string.
    pub hint: String,
}

impl Report {
    /// Converts the report to the form that pgrx raises or logs.
    pub fn error(self) -> ErrorReport {
        let mut error = ErrorReport::new(self.code, self.message, "snowflake_pg");
        if !self.detail.is_empty() {
            error = error.set_detail(self.detail);
        }
        if !self.hint.is_empty() {
            error = error.set_hint(self.hint);
        }
        error
    }
}

impl Error {
    /// Raises the error as an ERROR. In the postmaster, nothing can catch the error, so the server does not start.
    #[cold]
    pub fn raise(self) -> ! {
        self.report().error().report(PgLogLevel::ERROR);
        unreachable!("an ERROR does not return")
    }

    /// Returns the report of the error.
    pub fn report(&self) -> Report {
        use PgSqlErrorCode::{
            ERRCODE_ACTIVE_SQL_TRANSACTION, ERRCODE_CONFIGURATION_LIMIT_EXCEEDED, ERRCODE_DATATYPE_MISMATCH,
            ERRCODE_DATETIME_FIELD_OVERFLOW, ERRCODE_FEATURE_NOT_SUPPORTED, ERRCODE_INVALID_PARAMETER_VALUE,
            ERRCODE_NAME_TOO_LONG, ERRCODE_NULL_VALUE_NOT_ALLOWED, ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
            ERRCODE_OBJECT_IN_USE, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            ERRCODE_READ_ONLY_SQL_TRANSACTION, ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED, ERRCODE_UNDEFINED_TABLE,
            ERRCODE_WRONG_OBJECT_TYPE,
        };
        let (code, message, detail, hint) = match self {
            Error::NotPreloaded => (
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "library \"snowflake_pg\" is not preloaded".into(),
                String::new(),
                "Add snowflake_pg to \"shared_preload_libraries\" in postgresql.conf and restart the server.".into(),
            ),
            Error::WorkerUnset { layout, misnamed } => (
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "parameter \"snowflake_pg.worker_id\" is not set".into(),
                String::new(),
                reasons::worker_unset(layout, *misnamed),
            ),
            Error::WorkerAndRegistry { worker } => (
                ERRCODE_INVALID_PARAMETER_VALUE,
                "parameters \"snowflake_pg.worker_id\" and \"snowflake_pg.registry\" are both set".into(),
                format!("The worker ID is set to {worker}, but the registry assigns worker IDs."),
                "Remove \"snowflake_pg.worker_id\" from the configuration of every server of the fleet. To use a worker ID of \
                 your own choice, remove \"snowflake_pg.registry\"."
                    .into(),
            ),
            Error::Standby => (
                ERRCODE_READ_ONLY_SQL_TRANSACTION,
                "cannot issue an ID during recovery".into(),
                "The server is a standby or has not finished recovery yet.".into(),
                "Run the statement on the primary.".into(),
            ),
            Error::NoWorker { outage } => fleet::no_worker(outage),
            Error::GrantEnded { name, until, clock, outage } => fleet::grant_ended(name, *until, *clock, outage),
            Error::Fenced { name, host, by, seen } => fleet::fenced(name, host, by, *seen),
            Error::Number { setting, text, layout, max } => reasons::number(*setting, text, layout, *max),
            Error::Layout { text, error } => (
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("invalid value for parameter \"snowflake_pg.layout\": \"{text}\""),
                reasons::layout_detail(error),
                "Specify the field widths in bits as timestamp:worker:sequence or timestamp:datacenter:worker:sequence, for \
                 example \"41:10:12\", or specify a layout name from view \"snowflake_layouts\". Append \"@10ms\" or \"@1s\" for a \
                 longer tick. If the sequence is the second field, append \"s\" to its width, for example \"39:8s:16@10ms\"."
                    .into(),
            ),
            Error::Epoch { text, problem } => (
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("invalid value for parameter \"snowflake_pg.epoch\": \"{text}\""),
                reasons::epoch_detail(*problem).into(),
                "Specify a time with \"Z\" or a UTC offset, for example \"2010-11-04T01:42:54.657Z\", or the number of \
                 milliseconds since 1970-01-01 00:00:00 UTC, from 0 to 7258118399999."
                    .into(),
            ),
            Error::LayoutArgument { text, error } => (
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("\"{text}\" is not a valid layout"),
                reasons::layout_detail(error),
                "Pass either a layout name from view \"snowflake_layouts\" or the field widths in bits, for example \
                 \"41:10:12\". If the sequence is the second field, append \"s\" to its width, for example \"39:8s:16@10ms\"."
                    .into(),
            ),
            Error::EpochArgument { at, problem } => (
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("time {} is not a valid epoch", timestamp::utc(*at)),
                reasons::epoch_detail(*problem).into(),
                "Pass the time that a timestamp value of 0 represents, with at most millisecond precision.".into(),
            ),
            Error::Part { error: PartError { part, value, max }, layout } => (
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("{} {value} is out of range", reasons::numbered(*part)),
                match max {
                    0 => format!("Layout \"{layout}\" has no {part} field."),
                    _ => format!("The {part} field of layout \"{layout}\" can hold a number from 0 to {max}."),
                },
                if *max == 0 { "Pass 0." } else { "Pass a number in that range." }.into(),
            ),
            Error::NotAnId { id, format, error } => (
                ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
                format!("{id} is not an ID of layout \"{}\"", format.layout),
                match error {
                    FormatError::TooLarge { max } => format!("The largest ID of this layout is {max}."),
                    _ => "An ID cannot be negative.".into(),
                },
                "Pass an ID that was issued with this layout.".into(),
            ),
            Error::Negative { id } => (
                ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
                format!("{id} is not an ID"),
                "An ID cannot be negative.".into(),
                "Pass a number greater than or equal to zero.".into(),
            ),
            Error::Text { text, error, returned_by } => reasons::text_report(text, *error, returned_by),
            Error::Uuid { uuid, error } => reasons::uuid_report(uuid, *error),
            Error::Step { problem } => (
                ERRCODE_INVALID_PARAMETER_VALUE,
                "interval cannot be used as the length of a partition".into(),
                reasons::step_detail(*problem).into(),
                "Pass either a whole number of months or a combination of whole days, hours and minutes, for example '1 \
                 day'.".into(),
            ),
            Error::PartitionKey { table } => (
                ERRCODE_WRONG_OBJECT_TYPE,
                format!("{} is not partitioned by ranges of IDs", relation::shown(table)),
                "The table must be partitioned by RANGE on one column of type bigint.".into(),
                "Pass a table that was created with PARTITION BY RANGE (id).".into(),
            ),
            Error::PartitionTransaction => (
                ERRCODE_ACTIVE_SQL_TRANSACTION,
                "cannot create partitions in this transaction".into(),
                "The transaction uses a single snapshot for all statements, so it might not see partitions that other \
                 sessions have created since.".into(),
                "Call snowflake_create_partitions() in a transaction with isolation level READ COMMITTED.".into(),
            ),
            Error::Calendar { at } => (
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("time {} is out of range for partitions", timestamp::utc(*at)),
                "Partitions can cover times up to the end of the year 9999.".into(),
                "Pass an earlier time, or request fewer partitions.".into(),
            ),
            Error::NameTooLong { name, partition } => (
                ERRCODE_NAME_TOO_LONG,
                format!("name {} is too long", relation::shown(name)),
                format!("A name can be at most {} bytes long.", relation::MAX_BYTES),
                match partition {
                    true => "Give the partitioned table a shorter name. The name of each partition begins with the name of \
                        the partitioned table.",
                    false => "Pass the name of an existing column.",
                }
                .into(),
            ),
            Error::Instant { at, format } => (
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("time {} is outside the range of layout \"{}\"", timestamp::utc(*at), format.layout),
                reasons::range(format),
                "Pass a time in that range. Only snowflake_between(), snowflake_first_id_from() and \
                 snowflake_last_id_before() accept times outside that range."
                    .into(),
            ),
            Error::TimestampRange => (
                ERRCODE_DATETIME_FIELD_OVERFLOW,
                "timestamp out of range".into(),
                "The time encoded in the ID is outside the range of type timestamp with time zone.".into(),
                "Decode the ID with the layout that was used to issue it.".into(),
            ),
            Error::Count { count, max, more } => (
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("count {count} is out of range"),
                format!("The count must be from 1 to {max}."),
                if *count < 1 { "Pass a count in that range." } else { more }.into(),
            ),
            Error::NotConsecutive { layout } => (
                ERRCODE_FEATURE_NOT_SUPPORTED,
                format!("cannot reserve consecutive IDs with layout \"{layout}\""),
                "The sequence is not the least significant field of this layout.".into(),
                "Use snowflake_nextval_batch(), or use a layout in which the sequence is the least significant field.".into(),
            ),
            Error::NoCurrentId => (
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "no ID has been issued in this session yet".into(),
                String::new(),
                "Call snowflake_nextval() first.".into(),
            ),
            Error::Exhausted { format } => (
                ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED,
                format!("the timestamps of layout \"{}\" are exhausted", format.layout),
                format!("The last tick of this layout ends at {}.", timestamp::utc(format.end())),
                "Check the server's clock. If the clock is correct, no more IDs can be issued with this layout. IDs issued \
                 with a different layout or epoch might duplicate existing IDs."
                    .into(),
            ),
            Error::ClockBeforeEpoch { epoch } => (
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "the clock is before the epoch".into(),
                format!("The epoch is {}.", timestamp::utc(i128::from(epoch.unix_ms()) * 1_000)),
                "Correct the server's clock. Change \"snowflake_pg.epoch\" only if no IDs have ever been issued.".into(),
            ),
            Error::ClockBehind { behind } => (
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("the clock was set back and is now {:.3} s behind its earlier time", behind.as_secs_f64()),
                "All reserved IDs have been issued, and \"snowflake_pg.on_clock_regression\" does not allow the server to \
                 reserve more until the clock has caught up."
                    .into(),
                "Correct the server's clock, or set \"snowflake_pg.on_clock_regression\" to \"continue\" and reload the \
                 configuration. Neither action causes duplicate IDs."
                    .into(),
            ),
            Error::ClockOutside { clock, format } => (
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("the clock shows {}, which is outside the range of layout \"{}\"", timestamp::utc(*clock), format.layout),
                reasons::range(format),
                "Correct the server's clock.".into(),
            ),
            Error::WorkerInUse { name, postmaster, port, directory } => (
                ERRCODE_OBJECT_IN_USE,
                format!("{name} is in use by another server on this machine"),
                format!(
                    "The worker ID is in use by the server with process ID {postmaster}, port {port} and data directory \
                     \"{directory}\"."
                ),
                "Stop one of the two servers, or give it a different worker ID and restart it.".into(),
            ),
            Error::MarkMissing { problem } => reasons::mark_missing(*problem),
            Error::MarkWaits { cause, since } => reasons::mark_waits(*cause, *since),
            Error::MarkAhead { of_witness, mark, clock, format } => (
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                match of_witness {
                    true => "the mark in the witness is more than a day ahead of the clock",
                    false => "the high-water mark is more than a day ahead of the clock",
                }
                .into(),
                format!(
                    "IDs with timestamps up to {} might have been issued, but the clock shows {}. The layout is \"{}\", and \
                     the epoch is {}. If the clock, the layout or the epoch is wrong, new IDs might duplicate existing IDs.",
                    timestamp::utc(*mark),
                    timestamp::utc(*clock),
                    format.layout,
                    timestamp::utc(format.instant(0)),
                ),
                format!(
                    "Check the server's clock, and check whether \"snowflake_pg.epoch\", \"snowflake_pg.layout\" or \
                     \"snowflake_pg.datacenter_id\" has been changed. If the clock and these settings are correct, either the clock \
                     was wrong earlier or the layout was changed on purpose. Changing the layout is safe only if no IDs issued with \
                     the old layout remain. In either case, set the mark with snowflake_set_mark(). See {}.",
                    pages::BAD_DAY.section("Issuing is refused")
                ),
            ),
            Error::WorkerChanged => fleet::worker_changed(),
            Error::GrantAhead { start, clock } => fleet::grant_ahead(*start, *clock),
            Error::MarkRange { mark, layout } => (
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("mark {mark} is out of range"),
                format!("The mark must be from 1 to {}, the largest ID of layout \"{layout}\".", layout.last_id()),
                "Pass the highest ID that might have been issued, plus 1.".into(),
            ),
            Error::MarkTooHigh { mark, clock } => (
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("mark {mark} is more than a day ahead of the clock"),
                format!("The clock shows {}. With this mark, the server would refuse to issue IDs.", timestamp::utc(*clock)),
                format!(
                    "Pass a mark whose timestamp is at most a day ahead of the clock. If any rows have IDs that are further \
                     ahead, first change those IDs or the worker ID of the server. See {}.",
                    pages::BAD_DAY.section("IDs from the future")
                ),
            ),
            Error::MarkTransaction => (
                ERRCODE_ACTIVE_SQL_TRANSACTION,
                "cannot compare a mark with the IDs in a table in this transaction".into(),
                "The transaction might not see all rows because it either has already written data or uses a single snapshot."
                    .into(),
                "Call snowflake_set_mark() in a separate transaction with isolation level READ COMMITTED.".into(),
            ),
            Error::NullArgument { argument, names } => (
                ERRCODE_NULL_VALUE_NOT_ALLOWED,
                format!("argument \"{argument}\" must not be null"),
                String::new(),
                format!("Pass the name of an existing {names}."),
            ),
            Error::NoColumn { table, column } => reasons::no_column(table, column, ""),
            Error::NotIntegers { column } => (
                ERRCODE_DATATYPE_MISMATCH,
                format!("column {} is not of an integer type", relation::shown(column)),
                "IDs are stored in columns of type bigint.".into(),
                "Pass a column of type bigint. If the IDs are stored as text, create a view that converts them with \
                 snowflake_from_text(), and pass that view."
                    .into(),
            ),
            Error::ManyNodes { column, most, layout } => (
                ERRCODE_PROGRAM_LIMIT_EXCEEDED,
                format!("column {} contains IDs from more than {most} servers", relation::shown(column)),
                format!("The IDs were decoded with layout \"{layout}\"."),
                "Check that the IDs in the column were issued with this layout.".into(),
            ),
            Error::NoTable { table } => (
                ERRCODE_UNDEFINED_TABLE,
                format!("relation with OID {table} does not exist"),
                String::new(),
                "Pass the name of an existing table.".into(),
            ),
            Error::MarkLowered { mark, current } => (
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("mark {mark} is below the high-water mark, which is {current}"),
                "If this mark were set, the server might again issue IDs that lie between the two marks.".into(),
                "Pass a higher mark. To lower the mark on purpose, check the IDs in every other database, and then pass the table \
                 whose IDs must be below the mark, or a view that combines all such tables. To set the mark without comparing it \
                 with the IDs in a table, pass force => true."
                    .into(),
            ),
            Error::MarkBelowIds { mark, table, highest } => (
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("mark {mark} is not above every ID issued by this server in {}", relation::shown(table)),
                format!("The highest of these IDs is {highest}. If this mark were set, the server might issue that ID again."),
                format!(
                    "Pass a mark above this ID. If the timestamp of this ID is more than a day ahead of the clock, first change \
                     the ID of the row or the worker ID of the server. See {}.",
                    pages::BAD_DAY.section("IDs from the future")
                ),
            ),
            Error::Guard { table, problem } => guard::report(table, problem),
            Error::NotAGuard => guard::not_a_guard(),
            Error::Segment { tag, problem } => segment::report(tag, problem),
            Error::Serial(problem) => serial::report(problem),
            Error::Conceal(problem) => conceal::report(problem),
            Error::NoOrigins { setting } => (
                ERRCODE_CONFIGURATION_LIMIT_EXCEEDED,
                format!("cannot store the high-water mark while \"{setting}\" is 0"),
                "The high-water mark is stored as the progress of a replication origin.".into(),
                format!("Set \"{setting}\" to 1 or more, or remove \"snowflake_pg.worker_id\" from the configuration."),
            ),
        };
        Report { code, message, detail, hint }
    }
}
