//! The parts of messages that depend on the reason inside an error.

use flake::{IdFormat, Layout, LayoutError, Part, TEXT_LENGTH, TextError, UuidError};
use pgrx::prelude::*;

use crate::message::error::{EpochProblem, MarkProblem, Setting, StepProblem, WaitCause};
use crate::pg::{relation, timestamp, versions};

/// An SQLSTATE, a message, a detail and a hint.
pub type Sentences = (PgSqlErrorCode, String, String, String);

/// Returns the error for a high-water mark that is missing or cannot be stored.
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
            "Replication origin \"snowflake_pg\" does not exist. Either background worker \"snowflake_pg mark worker\" has not \
             created it yet, or it has been dropped."
                .into(),
            "Check the server log for messages from the background worker. If there are none, make sure that the clock is ahead of \
             the time of the last ID and that \"max_worker_processes\" is high enough to allow the background worker to \
                 start. Then restart the server."
                .into(),
        ),
        MarkProblem::NoPlace => (
            ERRCODE_CONFIGURATION_LIMIT_EXCEEDED,
            "no free slot for background worker \"snowflake_pg mark worker\"".into(),
            "The background worker creates replication origin \"snowflake_pg\", which stores the high-water mark. All \
             slots allowed by \"max_worker_processes\" are in use by other background workers."
                .into(),
            "Increase \"max_worker_processes\" by 1 or more and restart the server.".into(),
        ),
        MarkProblem::NoFreeState => (
            ERRCODE_CONFIGURATION_LIMIT_EXCEEDED,
            "no free replication state for the high-water mark".into(),
            "The high-water mark is stored as the progress of replication origin \"snowflake_pg\", which needs a replication \
             state.".into(),
            format!("Increase \"{setting}\" and restart the server, or drop a subscription and wait a few seconds."),
        ),
        MarkProblem::Dropped => (
            ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            missing,
            "Replication origin \"snowflake_pg\" was dropped.".into(),
            "Make sure that the clock is ahead of the time of the last ID, then restart the server. The server then creates \
             the origin, and new IDs begin at the current clock time."
                .into(),
        ),
        MarkProblem::SetBack => (
            ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            "the high-water mark was set back".into(),
            "The progress of replication origin \"snowflake_pg\" is behind IDs that this server might have issued.".into(),
            "Call snowflake_set_mark() to set the mark above every ID that this server has issued.".into(),
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
            "Replication origin \"snowflake_pg\" exists, but its progress has been lost.".into(),
            "Call snowflake_set_mark() to set the mark above every ID that this server has issued.".into(),
        ),
    }
}

/// Returns the error for a next ID that waits for the mark. The status shows this error, but it is never raised.
pub fn mark_waits(cause: WaitCause, since: i128) -> Sentences {
    let (message, hint) = match cause {
        WaitCause::Disk => (
            format!("the high-water mark has been waiting to be flushed to disk since {}", timestamp::utc(since)),
            "Check the disk that stores the write-ahead log.",
        ),
        WaitCause::Standby => (
            format!(
                "the high-water mark has been waiting for acknowledgment from a synchronous standby since {}",
                timestamp::utc(since)
            ),
            "Check view \"pg_stat_replication\", or change \"synchronous_standby_names\" and reload the configuration.",
        ),
    };
    (PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, message, String::new(), hint.into())
}

/// Returns advice for a server whose worker ID is not set.
pub fn worker_unset(layout: &Layout, misnamed: bool) -> String {
    let set = match layout.max(Part::Worker) {
        0 => format!(
            "Set \"snowflake_pg.worker_id\" to 0 in postgresql.conf and restart the server. The layout has no worker field, {}.",
            without_worker(layout)
        ),
        max => format!(
            "Set \"snowflake_pg.worker_id\" in postgresql.conf to a number from 0 to {max} that no other server uses, and \
             restart the server."
        ),
    };
    if misnamed {
        return format!(
            "{set} Parameter \"snowflake.worker_id\" is set, but this extension does not use it: rename it to \
             \"snowflake_pg.worker_id\"."
        );
    }
    set
}

/// Returns the name by which users know the number in a field.
pub fn numbered(part: Part) -> &'static str {
    match part {
        Part::Timestamp => "timestamp",
        Part::Datacenter => "datacenter ID",
        Part::Worker => "worker ID",
        Part::Sequence => "sequence number",
    }
}

/// Returns a clause that says how many servers can use a layout without a worker field.
pub fn without_worker(layout: &Layout) -> &'static str {
    match layout.has_datacenter() {
        true => "so servers are distinguished only by their datacenter IDs",
        false => "so only one server can use this layout",
    }
}

/// Returns the error for a numeric setting whose value is not a number or does not fit its field.
pub fn number(setting: Setting, text: &str, layout: &Layout, max: u64) -> Sentences {
    let (name, field) = match setting {
        Setting::Datacenter => ("datacenter_id", "datacenter"),
        Setting::Worker => ("worker_id", "worker"),
    };
    let (detail, hint) = match setting {
        Setting::Datacenter if !layout.has_datacenter() => (
            format!("Layout \"{layout}\" has no datacenter field."),
            "Remove the parameter, or choose a layout with a datacenter field, for example \"41:5:5:12\".",
        ),
        Setting::Worker if max == 0 => (
            format!("Layout \"{layout}\" has no worker field, {}.", without_worker(layout)),
            "Set the parameter to 0, or choose a layout with a worker field, for example \"41:10:12\".",
        ),
        _ => (
            format!("To fit the {field} field of layout \"{layout}\", the value must be an integer from 0 to {max}."),
            "Specify an integer in that range, in decimal digits without leading zeros.",
        ),
    };
    (
        PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        format!("invalid value for parameter \"snowflake_pg.{name}\": \"{text}\""),
        detail,
        hint.into(),
    )
}

/// Returns the reason why a text is not a layout.
pub fn layout_detail(error: &LayoutError) -> String {
    match error {
        LayoutError::Malformed => {
            "A layout is specified as three or four field widths in bits, or as a name from view \"snowflake_layouts\"."
                .into()
        }
        LayoutError::UnknownTick => "The tick after \"@\" must be \"1ms\", \"10ms\" or \"1s\".".into(),
        LayoutError::Width { part, min, max, .. } => {
            format!("The {part} field must be {min} to {max} bits wide.")
        }
        LayoutError::TooWide { bits } => {
            format!("The widths add up to {bits} bits, but an ID can have at most 63.")
        }
    }
}

/// Returns the error for a text that is not an ID in the form that a function returns.
pub fn text_report(text: &str, error: TextError, returned_by: &str) -> Sentences {
    let code = match error {
        TextError::TooLarge => PgSqlErrorCode::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
        _ => PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
    };
    let detail = match error {
        TextError::TooLarge => "Character 1 is greater than \"7\", so the number is too large for type bigint.".into(),
        TextError::Short { length: 0 } => "The text is empty.".into(),
        TextError::Short { length } => {
            format!("The text ends after character {length}, but an ID has {TEXT_LENGTH} characters.")
        }
        TextError::Long => format!("The text has more than {TEXT_LENGTH} characters."),
        TextError::Digit { position, byte } if byte.is_ascii_graphic() => {
            format!("Character {position} is \"{}\", which is not a base-32 digit.", byte as char)
        }
        TextError::Digit { position, .. } => format!("Character {position} is not a base-32 digit."),
    };
    // No ID has more than 19 decimal digits.
    let decimal = error == TextError::Long && text.len() <= 19 && text.bytes().all(|byte| byte.is_ascii_digit());
    let hint = match (decimal, returned_by) {
        (true, "snowflake_conceal_text") => {
            "The text looks like a concealed ID in decimal form. Cast it to bigint, and pass it to snowflake_reveal()."
                .into()
        }
        (true, _) => "The text looks like an ID in decimal form. Cast it to bigint.".into(),
        (false, _) => format!(
            "Pass a string in the form returned by {returned_by}(): {TEXT_LENGTH} characters, each of which is a digit or a letter \
             other than U."
        ),
    };
    (code, format!("\"{text}\" is not an ID in text form"), detail, hint)
}

/// Returns the error for a UUID that is not an ID.
pub fn uuid_report(uuid: &str, error: UuidError) -> Sentences {
    let detail = match error {
        UuidError::Variant => "The UUID does not have the variant of RFC 9562.".into(),
        UuidError::Version { version } => {
            format!("The UUID has version {version}, but the UUID of an ID has version 8.")
        }
        UuidError::Rest => "The last 59 bits of the UUID of an ID are 0.".into(),
    };
    (
        PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        format!("{uuid} is not the UUID of an ID"),
        detail,
        "Pass a UUID that snowflake_to_uuid() returned.".into(),
    )
}

/// Returns a text with the range of time for which a layout and an epoch have IDs.
pub fn range(format: &IdFormat) -> String {
    let (begin, end) = (timestamp::utc(format.instant(0)), timestamp::utc(format.end()));
    format!("IDs with this layout and epoch represent times from {begin} up to, but not including, {end}.")
}

/// Returns the error for a table without the column that a caller named as the one with the IDs. The names are quoted.
pub fn no_column(table: &str, column: &str, of_type: &str) -> Sentences {
    (
        PgSqlErrorCode::ERRCODE_UNDEFINED_COLUMN,
        format!("table {} has no column {}{of_type}", relation::shown(table), relation::shown(column)),
        String::new(),
        "Pass the name of the column that contains the IDs as argument \"key\".".into(),
    )
}

/// Returns the reason why an interval cannot be used as the length of a partition.
pub fn step_detail(problem: StepProblem) -> &'static str {
    match problem {
        StepProblem::NotPositive => "The interval must be greater than zero.",
        StepProblem::TooLong => "The interval is out of range.",
        StepProblem::UnderATick => "The interval is shorter than a tick of the layout.",
        StepProblem::Mixed => "Months cannot be combined with days or hours, because months vary in length.",
        StepProblem::NotMinutes => {
            "The interval must be a whole number of minutes, because partition names show times only to the minute."
        }
    }
}

/// Returns the reason why a time is not an epoch.
pub fn epoch_detail(problem: EpochProblem) -> &'static str {
    match problem {
        EpochProblem::Malformed => "The value is neither an ISO 8601 time nor a number of milliseconds.",
        EpochProblem::NoZone => "A time without a time zone would depend on the setting of \"TimeZone\".",
        EpochProblem::Fraction => "An epoch must not include a fraction of a millisecond.",
        EpochProblem::Range => "An epoch must be between 1970-01-01 and 2199-12-31.",
    }
}
