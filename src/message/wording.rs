//! Every error a user can meet: the only map from what went wrong to SQLSTATE, message, detail and hint.
//!
//! Messages follow PostgreSQL's style guide: the message says what happened, the detail gives facts, the hint advice.

use flake::{FormatError, PartError};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;

use crate::message::error::Error;
use crate::message::reasons;
use crate::pg::{relation, timestamp};

/// What PostgreSQL is told.
pub struct Report {
    /// The SQLSTATE.
    pub code: PgSqlErrorCode,
    /// What happened.
    pub message: String,
    /// Facts, or empty.
    pub detail: String,
    /// Advice, or empty.
    pub hint: String,
}

impl Report {
    /// The same as pgrx takes it, to be raised or logged.
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
    /// Raises the error as an ERROR; in the postmaster, where nothing can catch it, it ends the server's start.
    #[cold]
    pub fn raise(self) -> ! {
        self.report().error().report(PgLogLevel::ERROR);
        unreachable!("an ERROR does not return")
    }

    /// What PostgreSQL is told of the error.
    pub fn report(&self) -> Report {
        use PgSqlErrorCode::{
            ERRCODE_ACTIVE_SQL_TRANSACTION, ERRCODE_CONFIGURATION_LIMIT_EXCEEDED, ERRCODE_DATATYPE_MISMATCH,
            ERRCODE_DATETIME_FIELD_OVERFLOW, ERRCODE_FEATURE_NOT_SUPPORTED, ERRCODE_INVALID_PARAMETER_VALUE,
            ERRCODE_NAME_TOO_LONG, ERRCODE_NULL_VALUE_NOT_ALLOWED, ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
            ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            ERRCODE_READ_ONLY_SQL_TRANSACTION, ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED, ERRCODE_UNDEFINED_TABLE,
            ERRCODE_WRONG_OBJECT_TYPE,
        };
        let (code, message, detail, hint) = match self {
            Error::NotPreloaded => (
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "library \"snowflake_pg\" is not preloaded".into(),
                String::new(),
                "Add snowflake_pg to shared_preload_libraries in postgresql.conf and restart the server.".into(),
            ),
            Error::WorkerUnset { layout, misnamed } => (
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "parameter \"snowflake_pg.worker_id\" is not set".into(),
                String::new(),
                reasons::worker_unset(layout, *misnamed),
            ),
            Error::Standby => (
                ERRCODE_READ_ONLY_SQL_TRANSACTION,
                "cannot issue an ID during recovery".into(),
                "This server is a standby, or has not finished its recovery.".into(),
                "Ask the primary.".into(),
            ),
            Error::Number { setting, text, layout, max } => reasons::number(*setting, text, layout, *max),
            Error::Layout { text, error } => (
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("invalid value for parameter \"snowflake_pg.layout\": \"{text}\""),
                reasons::layout_detail(error),
                "Write the widths in bits as timestamp:worker:sequence or timestamp:datacenter:worker:sequence, at most 63 \
                 in sum, with @10ms or @1s after them for a longer tick, for example \"41:10:12\", or \"39:8s:16@10ms\" with \
                 the sequence second; or a name of view snowflake_layouts."
                    .into(),
            ),
            Error::Epoch { text, problem } => (
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("invalid value for parameter \"snowflake_pg.epoch\": \"{text}\""),
                reasons::epoch_detail(*problem).into(),
                "Write it with Z or an offset, for example \"2010-11-04T01:42:54.657Z\", or in milliseconds since 1970, \
                 from 0 to 7258118399999."
                    .into(),
            ),
            Error::LayoutArgument { text, error } => (
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("\"{text}\" is not a layout"),
                reasons::layout_detail(error),
                "Pass a name of view snowflake_layouts, or widths in bits, for example \"41:10:12\", or \"39:8s:16@10ms\" with \
                 the sequence second."
                    .into(),
            ),
            Error::EpochArgument { at, problem } => (
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("time {} is not an epoch", timestamp::utc(*at)),
                reasons::epoch_detail(*problem).into(),
                "Pass the instant at which the timestamp of these IDs is zero.".into(),
            ),
            Error::Part { error: PartError { part, value, max }, layout } => (
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("{} {value} is out of range", reasons::numbered(*part)),
                match max {
                    0 => format!("Layout \"{layout}\" has no {part} field."),
                    _ => format!("The {part} field of layout \"{layout}\" holds numbers from 0 to {max}."),
                },
                if *max == 0 { "Pass 0." } else { "Pass a number in that range." }.into(),
            ),
            Error::NotAnId { id, format, error } => (
                ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
                format!("{id} is not an ID of layout \"{}\"", format.layout),
                match error {
                    FormatError::TooLarge { max } => format!("The largest ID of this layout is {max}."),
                    _ => "An ID is never negative.".into(),
                },
                "Pass an ID that was issued with this layout.".into(),
            ),
            Error::Negative { id } => (
                ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
                format!("{id} is not an ID"),
                "An ID is never negative.".into(),
                "Pass a number from 0 on.".into(),
            ),
            Error::Text { text, error } => reasons::text_report(text, *error),
            Error::Step { problem } => (
                ERRCODE_INVALID_PARAMETER_VALUE,
                "interval cannot be the length of a partition".into(),
                reasons::step_detail(*problem).into(),
                "Pass whole months, or whole days, hours and minutes, for example '1 day'.".into(),
            ),
            Error::PartitionKey { table } => (
                ERRCODE_WRONG_OBJECT_TYPE,
                format!("{table} is not partitioned by ranges of IDs"),
                "It must be partitioned by RANGE of one column of type bigint.".into(),
                "Pass a table made with PARTITION BY RANGE (id).".into(),
            ),
            Error::PartitionTransaction => (
                ERRCODE_ACTIVE_SQL_TRANSACTION,
                "partitions cannot be made in this transaction".into(),
                "It keeps one snapshot to its end, and may not see those that another session has made.".into(),
                "Call snowflake_create_partitions() in a transaction of isolation level READ COMMITTED.".into(),
            ),
            Error::Calendar { at } => (
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("time {} is outside the calendar of partitions", timestamp::utc(*at)),
                "It ends with the year 9999.".into(),
                "Pass an earlier time, or fewer partitions.".into(),
            ),
            Error::NameTooLong { name } => (
                ERRCODE_NAME_TOO_LONG,
                format!("name {name} is too long"),
                format!("A name has at most {} bytes.", relation::MAX_BYTES),
                "Pass the name of a column, or of a table that leaves room for the time of a partition.".into(),
            ),
            Error::Instant { at, format } => (
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("time {} is outside the range of layout \"{}\"", timestamp::utc(*at), format.layout),
                format!(
                    "Its IDs begin at {} and end before {}.",
                    timestamp::utc(format.instant(0)),
                    timestamp::utc(format.end()),
                ),
                "Pass a time inside that range. Only snowflake_between, snowflake_first_id_from and snowflake_last_id_before \
                 take any time."
                    .into(),
            ),
            Error::TimestampRange => (
                ERRCODE_DATETIME_FIELD_OVERFLOW,
                "timestamp out of range".into(),
                "The time of this ID lies beyond the range of type timestamp with time zone.".into(),
                "Pass an ID that was issued with this layout.".into(),
            ),
            Error::Count { count, max, more } => (
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("count {count} is out of range"),
                format!("It must be from 1 to {max}."),
                if *count < 1 { "Pass a count in that range." } else { more }.into(),
            ),
            Error::NotConsecutive { layout } => (
                ERRCODE_FEATURE_NOT_SUPPORTED,
                format!("layout \"{layout}\" has no consecutive IDs to reserve"),
                "Its sequence is not the lowest field.".into(),
                "Use snowflake_nextval_batch, or a layout whose sequence is the lowest field.".into(),
            ),
            Error::NoCurrentId => (
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "no ID has been issued in this session yet".into(),
                String::new(),
                "Call snowflake_nextval() first.".into(),
            ),
            Error::Exhausted { format } => (
                ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED,
                format!("the time of layout \"{}\" is used up", format.layout),
                format!("Its last tick ends at {}.", timestamp::utc(format.end())),
                "Check the server's clock. If it is right, this layout can issue no more, and another layout or epoch can \
                 repeat its IDs."
                    .into(),
            ),
            Error::ClockBeforeEpoch { epoch } => (
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "the clock is before the epoch".into(),
                format!("The epoch is {}.", timestamp::utc(i128::from(epoch.unix_ms()) * 1_000)),
                "Set the server's clock. Change snowflake_pg.epoch only where no ID was ever issued.".into(),
            ),
            Error::ClockBehind { behind } => (
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("the clock was set back and is behind by {:.3} s", behind.as_secs_f64()),
                "The reservation is used up, and \"snowflake_pg.on_clock_regression\" forbids to extend it now.".into(),
                "Set the server's clock right, or set snowflake_pg.on_clock_regression to continue and reload: no ID \
                 repeats for it."
                    .into(),
            ),
            Error::ClockOutside { clock, format } => (
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("the clock shows {}, for which layout \"{}\" has no IDs", timestamp::utc(*clock), format.layout),
                format!(
                    "Its IDs begin at {} and end before {}.",
                    timestamp::utc(format.instant(0)),
                    timestamp::utc(format.end()),
                ),
                "Set the server's clock.".into(),
            ),
            Error::MarkMissing { problem } => reasons::mark_missing(*problem),
            Error::MarkWaits { cause, since } => reasons::mark_waits(*cause, *since),
            Error::MarkAhead { mark, clock, format } => (
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "the high-water mark is more than a day ahead of the clock".into(),
                format!(
                    "IDs up to {} may have been issued, and the clock shows {}. The layout is \"{}\", the epoch {}.",
                    timestamp::utc(*mark),
                    timestamp::utc(*clock),
                    format.layout,
                    timestamp::utc(format.instant(0)),
                ),
                "Check the server's clock, and whether snowflake_pg.epoch, snowflake_pg.layout or \
                 snowflake_pg.datacenter_id was changed: going on could repeat IDs. If all are right, an earlier clock was \
                 wrong; if the layout was changed on purpose, no ID of the old one may remain: set the mark with \
                 snowflake_set_mark(), see \"Issuing is refused\" in docs/durability.md."
                    .into(),
            ),
            Error::MarkRange { mark, layout } => (
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("mark {mark} is out of range"),
                format!("It must be from 1 to {}, the largest ID of layout \"{layout}\".", layout.last_id()),
                "Pass the highest ID that may have been issued, and 1 more.".into(),
            ),
            Error::MarkTooHigh { mark, clock } => (
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("mark {mark} is more than a day ahead of the clock"),
                format!("The clock shows {}. With such a mark no ID could be issued.", timestamp::utc(*clock)),
                "Pass a mark near the clock. If rows have IDs of that time, give them or the server another number first: see \
                 \"IDs of the future\" in docs/durability.md."
                    .into(),
            ),
            Error::MarkTransaction => (
                ERRCODE_ACTIVE_SQL_TRANSACTION,
                "a mark cannot be compared with a table in this transaction".into(),
                "It may not see all rows: it has written before, or it keeps one snapshot to its end.".into(),
                "Call snowflake_set_mark() in a transaction of its own, in isolation level READ COMMITTED.".into(),
            ),
            Error::NullArgument { argument, names } => (
                ERRCODE_NULL_VALUE_NOT_ALLOWED,
                format!("argument \"{argument}\" must not be null"),
                String::new(),
                format!("Pass the name of a {names} that exists."),
            ),
            Error::NotIntegers { column } => (
                ERRCODE_DATATYPE_MISMATCH,
                format!("column {column} has no integers"),
                "IDs are numbers of type bigint.".into(),
                "Pass a column of type bigint; where IDs are kept as text, a view with snowflake_from_text() of it.".into(),
            ),
            Error::ManyNodes { column, most, layout } => (
                ERRCODE_PROGRAM_LIMIT_EXCEEDED,
                format!("column {column} has IDs of more than {most} servers"),
                format!("They are read with layout \"{layout}\"."),
                "Check that the column has IDs of this layout.".into(),
            ),
            Error::NoTable { table } => (
                ERRCODE_UNDEFINED_TABLE,
                format!("relation with OID {table} does not exist"),
                String::new(),
                "Name one that does.".into(),
            ),
            Error::MarkLowered { mark, current } => (
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("mark {mark} is below the high-water mark, which is {current}"),
                "IDs between the two may have been issued, and would be issued again.".into(),
                "Name the table, or a view of all the tables, whose IDs the mark must stay above, having looked into every \
                 other database; or pass force => true."
                    .into(),
            ),
            Error::MarkBelowIds { mark, table, highest } => (
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("mark {mark} is not above the IDs of {table}"),
                format!("The highest ID of this server in it is {highest}, and would be issued again."),
                "Pass a mark above it. If that is more than a day ahead of the clock, give the row or the server another number \
                 first: see \"IDs of the future\" in docs/durability.md."
                    .into(),
            ),
            Error::NoOrigins { setting } => (
                ERRCODE_CONFIGURATION_LIMIT_EXCEEDED,
                format!("no high-water mark can be kept while \"{setting}\" is 0"),
                "It is the progress of a replication origin.".into(),
                format!("Set {setting} to 1 or more, or leave out snowflake_pg.worker_id."),
            ),
        };
        Report { code, message, detail, hint }
    }
}
