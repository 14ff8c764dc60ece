//! The errors of the functions that encode, decode, convert and check IDs.

use flake::{FormatError, IdFormat, Layout, Part, PartError, TEXT_LENGTH, TextError, UuidError};
use pgrx::PgSqlErrorCode;

use crate::message::layout;
use crate::message::report::{Report, as_sentence};
use crate::pg::{relation, timestamp};

/// Why an ID or one of its parts is invalid.
#[derive(Clone, Debug)]
pub enum IdProblem {
    /// A part of an ID does not fit into its field.
    Part { error: PartError, layout: Layout },
    /// A number is not an ID of the layout.
    NotAnId { id: i64, format: IdFormat, error: FormatError },
    /// A number is negative, so it is not an ID of any layout.
    Negative { id: i64 },
    /// A string is not an ID in the form that the function `returned_by` returns.
    Text { text: String, error: TextError, returned_by: &'static str },
    /// A UUID is not an ID.
    Uuid { uuid: String, error: UuidError },
    /// No ID exists for an instant in the layout and epoch.
    Instant { at: i128, format: IdFormat },
    /// The time of an ID is outside the range of `timestamptz`.
    TimestampRange,
    /// A column, whose name is quoted, contains IDs of more servers than the number that can be distinguished. The IDs
    /// were decoded with this layout.
    ManyNodes { column: String, most: usize, layout: Layout },
}

impl IdProblem {
    pub fn report(&self) -> Report {
        match self {
            IdProblem::Part { error: PartError { part, value, max }, layout } => Report::of(
                PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
                format!("{} {value} is out of range", numbered(*part)),
                match max {
                    0 => format!("Layout \"{layout}\" has no {part} field."),
                    _ => format!("The {part} field of layout \"{layout}\" can hold a number from 0 to {max}."),
                },
                if *max == 0 { "Pass 0." } else { "Pass a number in that range." },
            ),
            IdProblem::NotAnId { id, format, error } => Report::of(
                PgSqlErrorCode::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
                format!("{id} is not an ID of layout \"{}\"", format.layout),
                match error {
                    FormatError::TooLarge { max } => format!("The largest ID of this layout is {max}."),
                    _ => "An ID cannot be negative.".into(),
                },
                "Pass an ID that was issued with this layout.",
            ),
            IdProblem::Negative { id } => Report::of(
                PgSqlErrorCode::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
                format!("{id} is not an ID"),
                "An ID cannot be negative.",
                "Pass a number greater than or equal to zero.",
            ),
            IdProblem::Text { text, error, returned_by } => not_a_text(text, *error, returned_by),
            IdProblem::Uuid { uuid, error } => not_a_uuid(uuid, *error),
            IdProblem::Instant { at, format } => Report::of(
                PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
                format!("time {} is outside the range of layout \"{}\"", timestamp::utc(*at), format.layout),
                layout::range(format),
                "Pass a time in that range. Only snowflake_between(), snowflake_first_id_from() and \
                 snowflake_last_id_before() accept times outside that range.",
            ),
            IdProblem::TimestampRange => Report::of(
                PgSqlErrorCode::ERRCODE_DATETIME_FIELD_OVERFLOW,
                "timestamp out of range",
                "The time encoded in the ID is outside the range of type timestamp with time zone.",
                "Decode the ID with the layout that was used to issue it.",
            ),
            IdProblem::ManyNodes { column, most, layout } => Report::of(
                PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
                format!("column {} contains IDs from more than {most} servers", relation::shown(column)),
                format!("The IDs were decoded with layout \"{layout}\"."),
                "Check that the IDs in the column were issued with this layout.",
            ),
        }
    }
}

/// Returns the documentation's name for the number in a field.
fn numbered(part: Part) -> &'static str {
    match part {
        Part::Timestamp => "timestamp",
        Part::Datacenter => "datacenter ID",
        Part::Worker => "worker ID",
        Part::Sequence => "sequence number",
    }
}

/// Returns the error for a string that is not an ID in the form that the function `returned_by` returns.
fn not_a_text(text: &str, error: TextError, returned_by: &str) -> Report {
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
        TextError::Long | TextError::Digit { .. } => as_sentence(&error),
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
    Report::of(code, format!("\"{text}\" is not an ID in text form"), detail, hint)
}

/// Returns the error for a UUID that is not an ID.
fn not_a_uuid(uuid: &str, error: UuidError) -> Report {
    Report::of(
        PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        format!("{uuid} is not an ID in UUID form"),
        as_sentence(&error),
        "Pass a UUID that snowflake_to_uuid() returned.",
    )
}
