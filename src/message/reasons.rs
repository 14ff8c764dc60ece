//! The parts of reports that say why: sentences that depend on a reason inside an error.

use flake::{Layout, LayoutError, Part, TEXT_LENGTH, TextError};
use pgrx::prelude::*;

use crate::message::error::{EpochProblem, MarkProblem, Setting, StepProblem, WaitCause};
use crate::pg::{timestamp, versions};

/// SQLSTATE, message, detail and hint.
pub type Sentences = (PgSqlErrorCode, String, String, String);

/// There is no high-water mark.
pub fn mark_missing(problem: MarkProblem) -> Sentences {
    use PgSqlErrorCode::{
        ERRCODE_CONFIGURATION_LIMIT_EXCEEDED, ERRCODE_OBJECT_IN_USE, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
    };
    let setting = versions::ORIGINS_SETTING;
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
        MarkProblem::NoPlace => (
            ERRCODE_CONFIGURATION_LIMIT_EXCEEDED,
            "no place for background worker \"snowflake_pg mark keeper\"".into(),
            "It makes replication origin \"snowflake_pg\", which keeps the high-water mark, and max_worker_processes leaves no \
             place for it."
                .into(),
            "Increase max_worker_processes by 1 or more and restart the server.".into(),
        ),
        MarkProblem::NoFreeState => (
            ERRCODE_CONFIGURATION_LIMIT_EXCEEDED,
            "no free replication state for the high-water mark".into(),
            "It is the progress of replication origin \"snowflake_pg\", which could not be made.".into(),
            format!("Increase {setting} and restart the server, or drop a subscription and wait for some seconds."),
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
        MarkProblem::InUse => (
            ERRCODE_OBJECT_IN_USE,
            "the high-water mark is in use by a session".into(),
            "A session has called pg_replication_origin_session_setup('snowflake_pg').".into(),
            "Terminate that session, or call pg_replication_origin_session_reset() in it.".into(),
        ),
        MarkProblem::NoProgress => (
            ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            missing,
            "Replication origin \"snowflake_pg\" has lost its progress.".into(),
            "Set the mark above every ID that this server has issued, with snowflake_set_mark().".into(),
        ),
    }
}

/// The next ID waits. Shown in the status, but never raised.
pub fn mark_waits(cause: WaitCause, since: i128) -> Sentences {
    let (message, hint) = match cause {
        WaitCause::Disk => (
            format!("the high-water mark has been waiting to be flushed to disk since {}", timestamp::utc(since)),
            "Check the disk of the write-ahead log.",
        ),
        WaitCause::Standby => (
            format!("the synchronous standby has not acknowledged the high-water mark since {}", timestamp::utc(since)),
            "Check pg_stat_replication, or change synchronous_standby_names and reload the configuration.",
        ),
    };
    (PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, message, String::new(), hint.into())
}

/// What to do if the worker ID is not set.
pub fn worker_unset(layout: &Layout, misnamed: bool) -> String {
    let set = match layout.max(Part::Worker) {
        0 => format!(
            "Set it to 0 in postgresql.conf and restart the server: the layout has no worker field, {}.",
            without_worker(layout)
        ),
        max => format!("Give every server its own number from 0 to {max} in postgresql.conf and restart it."),
    };
    if misnamed {
        return format!(
            "{set} Parameter \"snowflake.worker_id\" is set, but is not used by this extension: rename it to \"snowflake_pg.worker_id\"."
        );
    }
    set
}

/// What users call the number in a field.
pub fn numbered(part: Part) -> &'static str {
    match part {
        Part::Timestamp => "timestamp",
        Part::Datacenter => "datacenter ID",
        Part::Worker => "worker ID",
        Part::Sequence => "sequence number",
    }
}

/// How many servers can use a layout without a worker field.
pub fn without_worker(layout: &Layout) -> &'static str {
    match layout.has_datacenter() {
        true => "and servers differ by their datacenter ID",
        false => "so that only one server can use it",
    }
}

/// A numeric setting is no number or does not fit.
pub fn number(setting: Setting, text: &str, layout: &Layout, max: u64) -> Sentences {
    let (name, field) = match setting {
        Setting::Datacenter => ("datacenter_id", "datacenter"),
        Setting::Worker => ("worker_id", "worker"),
    };
    let (detail, hint) = match setting {
        Setting::Datacenter if !layout.has_datacenter() => (
            format!("Layout \"{layout}\" has no datacenter field."),
            "Leave it out, or give the layout datacenter bits, as in \"41:5:5:12\".",
        ),
        Setting::Worker if max == 0 => (
            format!("Layout \"{layout}\" has no worker field, {}.", without_worker(layout)),
            "Set it to 0, or choose a layout with worker bits, as in \"41:10:12\".",
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

/// Why a text is not a layout.
pub fn layout_detail(error: &LayoutError) -> String {
    match error {
        LayoutError::Malformed => {
            "It is neither three or four widths in bits nor a name of view snowflake_layouts.".into()
        }
        LayoutError::UnknownTick => "The tick after \"@\" must be \"1ms\", \"10ms\" or \"1s\".".into(),
        LayoutError::Width { part, min, max, .. } => {
            format!("The {part} field must have {min} to {max} bits.")
        }
        LayoutError::TooWide { bits } => {
            format!("The widths sum to {bits} bits; a positive bigint has 63.")
        }
    }
}

/// A text is not an ID.
pub fn text_report(text: &str, error: TextError) -> Sentences {
    let code = match error {
        TextError::TooLarge => PgSqlErrorCode::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
        _ => PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
    };
    let detail = match error {
        TextError::TooLarge => "Character 1 is above \"7\", which makes it larger than any bigint.".into(),
        TextError::Short { length: 0 } => "It is empty.".into(),
        TextError::Short { length } => format!("It ends after character {length}, and an ID has {TEXT_LENGTH}."),
        TextError::Long => format!("It goes on after character {TEXT_LENGTH}."),
        TextError::Digit { position, byte } if byte.is_ascii_graphic() => {
            format!("Character {position} is \"{}\", which is no digit of base 32.", byte as char)
        }
        TextError::Digit { position, .. } => format!("Character {position} is no digit of base 32."),
    };
    let hint = "Pass 13 characters of 0 to 9 and A to Z without U, as snowflake_to_text() returns them.".into();
    (code, format!("\"{text}\" is not the text of an ID"), detail, hint)
}

/// Why an interval is not the length of a partition.
pub fn step_detail(problem: StepProblem) -> &'static str {
    match problem {
        StepProblem::NotPositive => "It must be longer than zero.",
        StepProblem::TooLong => "It is longer than time.",
        StepProblem::UnderATick => "It is shorter than a tick.",
        StepProblem::Mixed => "Months differ in length, and days or hours cannot be added to them.",
        StepProblem::NotMinutes => "Partitions are named by the minute.",
    }
}

/// Why a time is not an epoch.
pub fn epoch_detail(problem: EpochProblem) -> &'static str {
    match problem {
        EpochProblem::Malformed => "It is neither an ISO 8601 time nor a number of milliseconds.",
        EpochProblem::NoZone => "A time without a zone would mean another instant under another \"timezone\".",
        EpochProblem::Fraction => "An epoch is a whole number of milliseconds.",
        EpochProblem::Range => "An epoch lies between 1970-01-01 and 2199-12-31.",
    }
}
