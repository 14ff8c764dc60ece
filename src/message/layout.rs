//! Layouts and epochs: the errors for invalid settings and arguments, and the error and the log message for a layout
//! whose timestamps are exhausted.

use flake::{IdFormat, LayoutError};
use pgrx::PgSqlErrorCode;

use crate::message::report::{Report, as_sentence, warn_of};
use crate::pg::timestamp;

/// Why a layout or an epoch cannot be used.
#[derive(Clone, Debug)]
pub enum LayoutProblem {
    /// `snowflake_pg.layout` is not a layout.
    Setting { text: String, error: LayoutError },
    /// `snowflake_pg.epoch` is not an epoch.
    EpochSetting { text: String, problem: EpochProblem },
    /// A function's argument is not a layout.
    Argument { text: String, error: LayoutError },
    /// A function's argument is not an epoch.
    EpochArgument { at: i128, problem: EpochProblem },
    /// The timestamps of the layout are exhausted.
    Exhausted { format: IdFormat },
}

/// Why a string is not an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EpochProblem {
    /// The string is neither a time in ISO 8601 format nor a number.
    Malformed,
    /// The string is a time without a time zone, which would depend on the setting `TimeZone`.
    NoZone,
    /// The time is not a whole number of milliseconds.
    Fraction,
    /// The time is outside the range from 1970 to 2199.
    Range,
}

impl LayoutProblem {
    pub fn report(&self) -> Report {
        match self {
            LayoutProblem::Setting { text, error } => Report::of(
                PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
                format!("invalid value for parameter \"snowflake_pg.layout\": \"{text}\""),
                layout_detail(error),
                "Specify the field widths in bits as timestamp:worker:sequence or timestamp:datacenter:worker:sequence, for \
                 example \"41:10:12\", or specify a layout name from view \"snowflake_layouts\". Append \"@10ms\" or \"@1s\" for a \
                 longer tick. If the sequence is the second field, append \"s\" to its width, for example \"39:8s:16@10ms\".",
            ),
            LayoutProblem::EpochSetting { text, problem } => Report::of(
                PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
                format!("invalid value for parameter \"snowflake_pg.epoch\": \"{text}\""),
                epoch_detail(*problem),
                "Specify a time with \"Z\" or a UTC offset, for example \"2010-11-04T01:42:54.657Z\", or the number of \
                 milliseconds since 1970-01-01 00:00:00 UTC, from 0 to 7258118399999.",
            ),
            LayoutProblem::Argument { text, error } => Report::of(
                PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
                format!("\"{text}\" is not a valid layout"),
                layout_detail(error),
                "Pass either a layout name from view \"snowflake_layouts\" or the field widths in bits, for example \
                 \"41:10:12\". If the sequence is the second field, append \"s\" to its width, for example \"39:8s:16@10ms\".",
            ),
            LayoutProblem::EpochArgument { at, problem } => Report::of(
                PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
                format!("time {} is not a valid epoch", timestamp::utc(*at)),
                epoch_detail(*problem),
                "Pass the time that a timestamp value of 0 represents, with at most millisecond precision.",
            ),
            LayoutProblem::Exhausted { format } => Report::of(
                PgSqlErrorCode::ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED,
                format!("the timestamps of layout \"{}\" are exhausted", format.layout),
                format!("The last tick of this layout ends at {}.", timestamp::utc(format.end())),
                "Check the server's clock. If the clock is correct, no more IDs can be issued with this layout. IDs issued \
                 with a different layout or epoch might duplicate existing IDs.",
            ),
        }
    }
}

/// Returns the reason why a string is not a layout.
fn layout_detail(error: &LayoutError) -> String {
    match error {
        LayoutError::Malformed => {
            "A layout is specified as three or four field widths in bits, or as a name from view \"snowflake_layouts\"."
                .into()
        }
        LayoutError::Width { part, min, max, .. } => {
            format!("The {part} field must be {min} to {max} bits wide.")
        }
        LayoutError::UnknownTick | LayoutError::TooWide { .. } => as_sentence(error),
    }
}

/// Returns the reason why a time is not an epoch.
fn epoch_detail(problem: EpochProblem) -> &'static str {
    match problem {
        EpochProblem::Malformed => "The value is neither an ISO 8601 time nor a number of milliseconds.",
        EpochProblem::NoZone => "A time without a time zone would depend on the setting of \"TimeZone\".",
        EpochProblem::Fraction => "An epoch must not include a fraction of a millisecond.",
        EpochProblem::Range => "An epoch must be between 1970-01-01 and 2199-12-31.",
    }
}

/// Returns a sentence that states the time range that a layout and an epoch cover.
pub fn range(format: &IdFormat) -> String {
    let (begin, end) = (timestamp::utc(format.instant(0)), timestamp::utc(format.end()));
    format!("IDs with this layout and epoch represent times from {begin} up to, but not including, {end}.")
}

/// Warns that the layout's timestamps will be exhausted soon. `years` and `days` both state the remaining time.
pub fn ends_soon(format: &IdFormat, years: f64, days: f64) {
    let layout = format.layout;
    let left = match years {
        1.0.. => format!("{years:.1} years"),
        _ => format!("{days:.0} days"),
    };
    let end = timestamp::utc(format.end());
    warn_of(
        format!("the timestamps of layout \"{layout}\" will be exhausted in {left}"),
        format!("The last tick of this layout ends at {end}. After that, the server will not issue any IDs."),
        "Plan a move to a layout with a wider timestamp field, or to a different kind of key. IDs issued with a \
         different layout might duplicate existing IDs.",
    );
}
