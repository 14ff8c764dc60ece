//! Every error a user can meet: the only map from what went wrong to SQLSTATE, message, detail and hint.
//!
//! Messages follow PostgreSQL's style guide: the message says what happened, the detail gives facts, the hint advice.

use flake::{Layout, LayoutError, Part, PartError, Scheme, SchemeError};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;

use crate::failure::{EpochProblem, Failure, MarkProblem, Setting};
use crate::major;
use crate::timestamp;

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

impl Failure {
    /// Raises the failure as an ERROR; in the postmaster, where nothing can catch it, it ends the server's start.
    #[cold]
    pub fn raise(self) -> ! {
        let report = self.report();
        let mut error = ErrorReport::new(report.code, report.message, "snowflake_pg");
        if !report.detail.is_empty() {
            error = error.set_detail(report.detail);
        }
        if !report.hint.is_empty() {
            error = error.set_hint(report.hint);
        }
        error.report(PgLogLevel::ERROR);
        unreachable!("an ERROR does not return")
    }

    /// What PostgreSQL is told of the failure.
    pub fn report(&self) -> Report {
        use PgSqlErrorCode::*;
        let (code, message, detail, hint) = match self {
            Failure::NotPreloaded => (
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "library \"snowflake_pg\" is not preloaded".into(),
                String::new(),
                "Add snowflake_pg to shared_preload_libraries in postgresql.conf and restart the server.".into(),
            ),
            Failure::WorkerUnset { layout } => (
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "parameter \"snowflake_pg.worker_id\" is not set".into(),
                String::new(),
                format!(
                    "Give every server its own number from 0 to {} in postgresql.conf and restart it.",
                    layout.max(Part::Worker)
                ),
            ),
            Failure::Standby => (
                ERRCODE_READ_ONLY_SQL_TRANSACTION,
                "cannot issue an ID during recovery".into(),
                "This server is a standby, or has not finished its recovery.".into(),
                "Ask the primary.".into(),
            ),
            Failure::Number { setting, text, layout, max } => number(*setting, text, layout, *max),
            Failure::Layout { text, error } => (
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("invalid value for parameter \"snowflake_pg.layout\": \"{text}\""),
                layout_detail(error),
                "Write the widths in bits as timestamp:worker:sequence or timestamp:datacenter:worker:sequence, at most 63 \
                 in sum, with @10ms or @1s after them for a longer tick, for example \"41:10:12\"."
                    .into(),
            ),
            Failure::Epoch { text, problem } => (
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("invalid value for parameter \"snowflake_pg.epoch\": \"{text}\""),
                epoch_detail(*problem).into(),
                "Write it with Z or an offset, for example \"2010-11-04T01:42:54.657Z\", or in milliseconds since 1970, \
                 from 0 to 7258118399999."
                    .into(),
            ),
            Failure::Part(PartError { part, value, max }) => (
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("{} {value} is out of range", numbered(*part)),
                match max {
                    0 => format!("This server's layout has no {part} field."),
                    _ => format!("The {part} field of this server's layout holds numbers from 0 to {max}."),
                },
                if *max == 0 { "Pass 0." } else { "Pass a number in that range." }.into(),
            ),
            Failure::NotAnId { id, scheme, error } => (
                ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
                format!("{id} is not an ID of layout \"{}\"", scheme.layout),
                match error {
                    SchemeError::TooLarge { max } => format!("The largest ID of this layout is {max}."),
                    _ => "An ID is never negative.".into(),
                },
                "Pass an ID that was issued with this server's layout.".into(),
            ),
            Failure::Instant { at, scheme } => (
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("time {} is outside the range of layout \"{}\"", timestamp::utc(*at), scheme.layout),
                format!(
                    "Its IDs begin at {} and end before {}.",
                    timestamp::utc(scheme.instant(0)),
                    timestamp::utc(end(scheme)),
                ),
                "Pass a time inside that range. Only snowflake_between, snowflake_first_id_from and snowflake_last_id_before \
                 take any time."
                    .into(),
            ),
            Failure::TimestampRange => (
                ERRCODE_DATETIME_FIELD_OVERFLOW,
                "timestamp out of range".into(),
                "The time of this ID lies beyond the range of type timestamp with time zone.".into(),
                "Pass an ID that was issued with this server's layout.".into(),
            ),
            Failure::Count { count, max, more } => (
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("count {count} is out of range"),
                format!("It must be from 1 to {max}."),
                if *count < 1 { "Pass a count in that range." } else { more }.into(),
            ),
            Failure::NotConsecutive { layout } => (
                ERRCODE_FEATURE_NOT_SUPPORTED,
                format!("layout \"{layout}\" has no consecutive IDs to reserve"),
                "Its sequence is not the lowest field.".into(),
                "Use snowflake_nextval_batch, or a layout whose sequence is the lowest field.".into(),
            ),
            Failure::NoCurrentId => (
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "no ID has been issued in this session yet".into(),
                String::new(),
                "Call snowflake_nextval() first.".into(),
            ),
            Failure::Exhausted { scheme } => (
                ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED,
                format!("the time of layout \"{}\" is used up", scheme.layout),
                format!("Its last tick ends at {}.", timestamp::utc(end(scheme))),
                "Check the server's clock. If it is right, this layout can issue no more, and another layout or epoch can \
                 repeat its IDs."
                    .into(),
            ),
            Failure::ClockBeforeEpoch { epoch } => (
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "the clock is before the epoch".into(),
                format!("The epoch is {}.", timestamp::utc(i128::from(epoch.unix_ms()) * 1_000)),
                "Set the server's clock. Change snowflake_pg.epoch only where no ID was ever issued.".into(),
            ),
            Failure::ClockBehind { behind } => (
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("the clock was set back and is behind by {:.3} s", behind.as_secs_f64()),
                "The reservation is used up, and \"snowflake_pg.on_clock_regression\" forbids to extend it now.".into(),
                "Set the server's clock right, or set snowflake_pg.on_clock_regression to continue and reload: no ID \
                 repeats for it."
                    .into(),
            ),
            Failure::ClockOutside { clock, scheme } => (
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("the clock shows {}, for which layout \"{}\" has no IDs", timestamp::utc(*clock), scheme.layout),
                format!(
                    "Its IDs begin at {} and end before {}.",
                    timestamp::utc(scheme.instant(0)),
                    timestamp::utc(end(scheme)),
                ),
                "Set the server's clock.".into(),
            ),
            Failure::MarkMissing { problem } => mark_missing(*problem),
            Failure::MarkAhead { mark, clock, scheme } => (
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "the high-water mark is more than a day ahead of the clock".into(),
                format!(
                    "IDs up to {} may have been issued, and the clock shows {}. The layout is \"{}\", the epoch {}.",
                    timestamp::utc(*mark),
                    timestamp::utc(*clock),
                    scheme.layout,
                    timestamp::utc(scheme.instant(0)),
                ),
                "Check the server's clock, and whether snowflake_pg.epoch, snowflake_pg.layout or \
                 snowflake_pg.datacenter_id was changed: going on could repeat IDs. If all are right, an earlier clock was \
                 wrong: set the mark with snowflake_set_mark()."
                    .into(),
            ),
            Failure::MarkRange { mark, layout } => (
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("mark {mark} is out of range"),
                format!("It must be from 1 to {}, the largest ID of layout \"{layout}\".", layout.last_id()),
                "Pass the highest ID that may have been issued, and 1 more.".into(),
            ),
            Failure::MarkTooHigh { mark, clock } => (
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("mark {mark} is more than a day ahead of the clock"),
                format!("The clock shows {}. With such a mark no ID could be issued.", timestamp::utc(*clock)),
                "Pass the highest ID that may have been issued, and 1 more; or, if it is that, force => true.".into(),
            ),
            Failure::MarkTransaction => (
                ERRCODE_ACTIVE_SQL_TRANSACTION,
                "a mark cannot be compared with a table in this transaction".into(),
                "It may not see all rows: it has written before, or it keeps one snapshot to its end.".into(),
                "Call snowflake_set_mark() in a transaction of its own, in isolation level READ COMMITTED.".into(),
            ),
            Failure::NoTable { table } => (
                ERRCODE_UNDEFINED_TABLE,
                format!("relation with OID {table} does not exist"),
                String::new(),
                "Name a table or a view.".into(),
            ),
            Failure::MarkLowered { mark, current } => (
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("mark {mark} is below the high-water mark, which is {current}"),
                "IDs between the two may have been issued, and would be issued again.".into(),
                "Name the table, or a view of all the tables, whose IDs the mark must stay above, having looked into every \
                 other database; or pass force => true."
                    .into(),
            ),
            Failure::MarkBelowIds { mark, table, highest } => (
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("mark {mark} is not above the IDs of {table}"),
                format!("The highest ID of this server in it is {highest}, and would be issued again."),
                "Pass a mark above it; or, if that row is to go, force => true.".into(),
            ),
            Failure::NoOrigins { setting } => (
                ERRCODE_CONFIGURATION_LIMIT_EXCEEDED,
                format!("no high-water mark can be kept while \"{setting}\" is 0"),
                "It is the progress of a replication origin.".into(),
                format!("Set {setting} to 1 or more, or leave out snowflake_pg.worker_id."),
            ),
            Failure::Unreachable(what) => (
                ERRCODE_INTERNAL_ERROR,
                format!("unexpected state: {what}"),
                String::new(),
                "Report this to the maintainers of snowflake_pg.".into(),
            ),
        };
        Report { code, message, detail, hint }
    }
}

fn mark_missing(problem: MarkProblem) -> (PgSqlErrorCode, String, String, String) {
    use PgSqlErrorCode::*;
    let setting = major::ORIGINS_SETTING;
    let missing = "the high-water mark is missing".to_string();
    match problem {
        MarkProblem::NotMade => (
            ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            missing,
            "There is no replication origin \"snowflake_pg\": background worker \"snowflake_pg mark keeper\" has not made it \
             yet, or it was dropped."
                .into(),
            "Look for the background worker's messages in the server's log. If there are none, see that the clock is ahead of \
             the last ID and that max_worker_processes leaves room for it, and restart the server."
                .into(),
        ),
        MarkProblem::NoFreeState => (
            ERRCODE_CONFIGURATION_LIMIT_EXCEEDED,
            "no free replication state for the high-water mark".into(),
            "It is the progress of replication origin \"snowflake_pg\", which could not be made.".into(),
            format!("Increase {setting} and restart the server, or drop a subscription and wait for a minute."),
        ),
        MarkProblem::Dropped => (
            ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            missing,
            "Replication origin \"snowflake_pg\" was dropped.".into(),
            "See that the clock is ahead of the last ID, and restart the server: it makes the origin, and IDs begin at the \
             clock."
                .into(),
        ),
        MarkProblem::SetBack => (
            ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            "the high-water mark was set back".into(),
            "The progress of replication origin \"snowflake_pg\" is below what may have been issued.".into(),
            "Set the mark above every ID that this server has issued, with snowflake_set_mark().".into(),
        ),
        MarkProblem::NoProgress => (
            ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            missing,
            "Replication origin \"snowflake_pg\" has lost its progress.".into(),
            "Set the mark above every ID that this server has issued, with snowflake_set_mark().".into(),
        ),
    }
}

/// What users call the number in a field.
fn numbered(part: Part) -> &'static str {
    match part {
        Part::Timestamp => "timestamp",
        Part::Datacenter => "datacenter ID",
        Part::Worker => "worker ID",
        Part::Sequence => "sequence number",
    }
}

/// The instant after the last tick.
fn end(scheme: &Scheme) -> i128 {
    scheme.instant(scheme.layout.max(Part::Timestamp) + 1)
}

fn number(setting: Setting, text: &str, layout: &Layout, max: u64) -> (PgSqlErrorCode, String, String, String) {
    let (name, field) = match setting {
        Setting::Datacenter => ("datacenter_id", "datacenter"),
        Setting::Worker => ("worker_id", "worker"),
    };
    let (detail, hint) = match setting {
        Setting::Datacenter if !layout.has_datacenter() => (
            format!("Layout \"{layout}\" has no datacenter field."),
            "Leave it out, or give the layout four widths, as in \"41:5:5:12\".",
        ),
        _ => (
            format!("It must be a number from 0 to {max}, to fit the {field} field of layout \"{layout}\"."),
            "Write a number in that range, in decimal digits without a leading zero.",
        ),
    };
    (
        PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        format!("invalid value for parameter \"snowflake_pg.{name}\": \"{text}\""),
        detail,
        hint.into(),
    )
}

fn layout_detail(error: &LayoutError) -> String {
    match error {
        LayoutError::Malformed => "It is neither three or four widths in bits nor the name of a preset.".into(),
        LayoutError::UnknownTick => "The tick after \"@\" must be \"1ms\", \"10ms\" or \"1s\".".into(),
        LayoutError::Width { part, min, max, .. } => {
            format!("The {part} field must have {min} to {max} bits.")
        }
        LayoutError::TooWide { bits } => {
            format!("The widths sum to {bits} bits; a positive bigint has 63.")
        }
    }
}

fn epoch_detail(problem: EpochProblem) -> &'static str {
    match problem {
        EpochProblem::Malformed => "It is neither an ISO 8601 time nor a number of milliseconds.",
        EpochProblem::NoZone => "A time without a zone would mean another instant under another \"timezone\".",
        EpochProblem::Fraction => "An epoch is a whole number of milliseconds.",
        EpochProblem::Range => "An epoch lies between 1970-01-01 and 2199-12-31.",
    }
}
