//! Series and their serials: the errors of the functions that define a series, draw its numbers and parse its serials.
//!
//! Strings from users are converted to ASCII and truncated if they are long. Names of tables and columns are quoted for
//! use in a statement.

use flake::serial::{NotASerial, TemplateError, YearRange};
use pgrx::PgSqlErrorCode;

use crate::message::report::{Report, as_sentence};
use crate::pg::relation::shown;
use crate::pg::timestamp;

/// Why a series or a serial is invalid.
#[derive(Clone, Debug)]
pub enum SerialProblem {
    /// An argument is NULL. `example` is an acceptable value.
    Null { argument: &'static str, example: &'static str },
    /// A string is not a template.
    Template { text: String, error: TemplateError },
    /// This kind of series does not exist. The hint lists all kinds.
    Kind { kind: String, kinds: &'static str },
    /// There is no such time zone.
    Zone { zone: String },
    /// The time zone depends on the configuration of the server.
    LocalZone { zone: String },
    /// The first number is negative or does not fit the template.
    Start { start: i64, max: i64 },
    /// The string is not the name of a table.
    Name { name: String },
    /// The name of the series is too long for a tag. The lengths are in bytes of UTF-8.
    LongName { series: String, bytes: usize, most: usize },
    /// A temporary table cannot be a series whose numbers come from segments.
    Temporary { series: String },
    /// The owner of the series does not have the privilege to draw numbers from segments. The names are quoted.
    OwnerMayNotDraw { series: String, owner: String, function: String },
    /// The security label of the series is not its tag. `label` is the tag as a string constant.
    NotHolder { series: String, tag: String, label: String },
    /// The role may not set this security label.
    Label { label: String },
    /// Two series have the same tag.
    SharedTag { series: String, other: String },
    /// The relation is not a series.
    NotASeries { relation: String },
    /// The arguments of the trigger on the series do not come from `snowflake_create_series`.
    Definition { series: String },
    /// The new template has different periods, but the series has already issued numbers.
    OtherPeriods { series: String },
    /// This part of the definition cannot be changed, because the series has issued numbers or because several servers
    /// share it.
    Fixed { series: String, part: &'static str, is_dense: bool },
    /// The series has no counters, because its numbers come from segments.
    Dense { series: String },
    /// A serial of the new template could be equal to a serial of the old template.
    Ambiguous { series: String, template: String },
    /// The server is in recovery.
    Standby,
    /// The year does not fit the template.
    Year { at: i128, years: YearRange },
    /// The periods are hours, but the argument is a date.
    DateForHours { series: String },
    /// The next number does not fit the template.
    Overflow { series: String, period: String, number: i64, max: i64 },
    /// A string is not a serial of the series.
    NotASerial { text: String, series: String, template: String, error: NotASerial },
    /// A statement writes a row to a series, but the row is not a counter.
    Row { series: String, period: String },
    /// A counter is above the last number that fits the template.
    AboveTemplate { series: String, period: String, last: i64, max: i64 },
    /// A statement lowers a counter.
    Lowered { series: String, period: String, from: i64, to: i64 },
    /// A statement removes counters or changes their periods.
    Removed { series: String },
    /// `snowflake_series_row()` was called by something other than a trigger on a series.
    NotASeriesTrigger,
    /// The columns of the series' table are not the expected ones.
    Columns { series: String },
    /// A role that does not own the series writes a counter other than the next number.
    Step { series: String, next: i64 },
    /// More numbers are missing from a column than can be listed.
    ManyGaps { column: String, most: usize },
}

impl SerialProblem {
    pub fn report(&self) -> Report {
        let argument = PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE;
        match self {
            SerialProblem::Null { argument, example } => Report::of(
                PgSqlErrorCode::ERRCODE_NULL_VALUE_NOT_ALLOWED,
                format!("argument \"{argument}\" must not be null"),
                "",
                format!("Pass a value, for example {example}."),
            ),
            SerialProblem::Template { text, error } => Report::of(
                argument,
                format!("\"{text}\" is not a valid template"),
                as_sentence(error),
                "Pass literal text with the fields {YYYY} or {YY}, {MM}, {DD}, {HH} and exactly one {n:width}, for example \
                 'INV-{YYYY}-{n:5}'.",
            ),
            SerialProblem::Kind { kind, kinds } => Report::of(
                argument,
                format!("unknown kind of series \"{kind}\""),
                "",
                format!("The kinds are: {kinds}."),
            ),
            SerialProblem::Zone { zone } => Report::of(
                argument,
                format!("time zone \"{zone}\" not recognized"),
                "",
                "Pass a name from view \"pg_timezone_names\", for example 'Europe/Berlin'.",
            ),
            SerialProblem::LocalZone { zone } => Report::of(
                argument,
                format!("time zone \"{zone}\" depends on the server"),
                "The name stands for the time zone that this server's operating system is set to, or exists only in some installations.",
                "Pass the name of a place or \"UTC\" from view \"pg_timezone_names\", for example 'Europe/Berlin'.",
            ),
            SerialProblem::Start { start, max } => Report::of(
                argument,
                format!("first number {start} is out of range"),
                format!("The template has room for numbers from 0 to {max}."),
                "Pass a number in that range, or a template with a wider number field.",
            ),
            SerialProblem::Name { name } => Report::of(
                argument,
                format!("\"{name}\" is not the name of a table"),
                "The name of a series is a table name, with or without a schema.",
                "Pass a name such as 'invoice' or 'accounting.invoice'.",
            ),
            SerialProblem::LongName { series, bytes, most } => Report::of(
                PgSqlErrorCode::ERRCODE_NAME_TOO_LONG,
                format!("the name of series {} is too long for kind \"dense\"", shown(series)),
                format!(
                    "The schema and the name have {bytes} bytes in UTF-8, including the dot and the quotes, but the \
                     maximum is {most}."
                ),
                "Pass a shorter name.",
            ),
            SerialProblem::Temporary { series } => Report::of(
                PgSqlErrorCode::ERRCODE_INVALID_TABLE_DEFINITION,
                format!("temporary table {} cannot be a series of kind \"dense\"", shown(series)),
                "The segments of a series remain in the registry, and all servers of the fleet share them.",
                "Create the series in a schema that is not temporary, or use kind \"gapless\".",
            ),
            SerialProblem::OwnerMayNotDraw { series, owner, function } => Report::of(
                PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
                format!("the owner of series {} is not allowed to draw numbers from segments", shown(series)),
                format!("Role {} does not have the EXECUTE privilege on function {function}.", shown(owner)),
                format!("As the owner of the extension, run GRANT EXECUTE ON FUNCTION {function} TO {owner}."),
            ),
            SerialProblem::NotHolder { series, tag, label } => Report::of(
                PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
                format!("series {} is not allowed to draw from tag \"{tag}\"", shown(series)),
                "The table does not have the security label that snowflake_create_series() sets.",
                format!(
                    "If the table should have this tag, run SECURITY LABEL FOR snowflake_pg ON TABLE {series} IS \
                     {label} as a superuser. If the tag is the name of the table, the owner of the table can also run \
                     this statement."
                ),
            ),
            SerialProblem::Label { label } => Report::of(
                PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
                format!("permission denied to set security label \"{label}\""),
                "The label allows a series of kind \"dense\" to draw from the tag with this name.",
                "Run the statement as a superuser, or set the schema and the name of the table as its label.",
            ),
            SerialProblem::SharedTag { series, other } => Report::of(
                PgSqlErrorCode::ERRCODE_DUPLICATE_OBJECT,
                format!("series {} would share the numbers of series {}", shown(series), shown(other)),
                "Only one table in a database can draw from a tag. The existing series has kept this tag, because it was \
                 renamed or restored from a dump.",
                "Use a different name, or drop the existing series.",
            ),
            SerialProblem::NotASeries { relation } => Report::of(
                PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
                format!("{} is not a series", shown(relation)),
                "",
                "Pass a series from view \"snowflake_series\", or create one with snowflake_create_series().",
            ),
            SerialProblem::Definition { series } => Report::of(
                PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("the definition of series {} is invalid", shown(series)),
                "The arguments of its trigger \"snowflake_series\" are not those that snowflake_create_series() writes.",
                "Create the trigger again with its original arguments. A dump contains these arguments.",
            ),
            SerialProblem::OtherPeriods { series } => Report::of(
                PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("cannot change the periods of series {}", shown(series)),
                "The series has issued numbers, or this transaction cannot see whether it has. The new template has \
                 different time fields.",
                "Create a new series with the new template, and switch to it at the beginning of a period.",
            ),
            SerialProblem::Fixed { series, part, is_dense } => Report::of(
                PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("cannot change the {part} of series {}", shown(series)),
                match is_dense {
                    true => "All servers that share a series of kind \"dense\" must agree on this value.",
                    false => "The series has issued numbers, or this transaction cannot see whether it has.",
                },
                match is_dense {
                    true => "Create a series with a different name.",
                    false => {
                        "Create a new series. To start a single period at a different number, insert a row for the \
                         period into the table of the series, with the preceding number as \"last_number\"."
                    }
                },
            ),
            SerialProblem::Dense { series } => Report::of(
                PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("series {} has no counters", shown(series)),
                "Its kind is \"dense\": the registry issues its numbers, and numbers can be missing.",
                "Use a series of kind \"gapless\".",
            ),
            SerialProblem::Ambiguous { series, template } => Report::of(
                argument,
                format!("template \"{template}\" is ambiguous for series {}", shown(series)),
                "A serial with this template can be identical to a serial with the current template.",
                "Pass a template with a different literal text or a different length.",
            ),
            SerialProblem::Standby => Report::of(
                PgSqlErrorCode::ERRCODE_READ_ONLY_SQL_TRANSACTION,
                "cannot issue a serial during recovery",
                "The server is a standby or has not finished recovery yet.",
                "Run the statement on the primary.",
            ),
            SerialProblem::Year { at, years } => Report::of(
                PgSqlErrorCode::ERRCODE_DATETIME_FIELD_OVERFLOW,
                format!("time {} does not fit the template of the series", timestamp::utc(*at)),
                as_sentence(years),
                "Pass a time in one of these years. {YY} represents years of the 21st century, and {YYYY} represents four digits.",
            ),
            SerialProblem::DateForHours { series } => Report::of(
                argument,
                format!("a date does not determine the period of series {}", shown(series)),
                "The template of the series contains the hour.",
                "Pass a value of type timestamptz.",
            ),
            SerialProblem::Overflow { series, period, number, max } => Report::of(
                PgSqlErrorCode::ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED,
                format!("series {} has no numbers left{}", shown(series), in_period(period)),
                format!("The next number is {number}. The template has room for numbers up to {max}."),
                "Call snowflake_alter_series() with a template that has a wider number field. The series then \
                 continues with this number.",
            ),
            SerialProblem::NotASerial { text, series, template, error } => Report::of(
                argument,
                format!("\"{text}\" is not a serial of series {}", shown(series)),
                match error {
                    NotASerial::Form => format!("The text does not match template \"{template}\"."),
                    NotASerial::Time => "The text contains a time that does not exist.".into(),
                },
                "Pass a value that snowflake_serial() returned for this series.",
            ),
            SerialProblem::Row { series, period } => Report::of(
                argument,
                format!("a row with period \"{period}\" is not a counter of series {}", shown(series)),
                "A counter has a period in the form that the template requires, and a last number that is not negative.",
                "Insert a period in the form that snowflake_serial_parse() returns.",
            ),
            SerialProblem::AboveTemplate { series, period, last, max } => Report::of(
                PgSqlErrorCode::ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED,
                format!("the counter of series {} is above the last number of its template", shown(series)),
                format!("The counter{} is {last}. The template has room for numbers up to {max}.", in_period(period)),
                "Use a template with a wider number field, or set the counter to a lower number.",
            ),
            SerialProblem::Lowered { series, period, from, to } => Report::of(
                PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("cannot lower the counter of series {} from {from} to {to}", shown(series)),
                format!("The numbers between them would be issued again{}.", in_period(period)),
                "Set a higher number. If none of these numbers is in use, the owner can disable trigger \"snowflake_series\" \
                 for this change.",
            ),
            SerialProblem::Removed { series } => Report::of(
                PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("cannot remove a counter of series {}", shown(series)),
                "The series would issue the numbers of the period again, starting with the first one.",
                "Keep the rows of earlier periods. To remove the whole series, drop the table.",
            ),
            SerialProblem::NotASeriesTrigger => Report::of(
                PgSqlErrorCode::ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED,
                "function snowflake_series_row() was not called by a series",
                "A series is a table that snowflake_create_series() has created, with its triggers.",
                "Drop the trigger, and call snowflake_create_series().",
            ),
            SerialProblem::Columns { series } => Report::of(
                PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("the columns of series {} are invalid", shown(series)),
                "A series needs the columns \"period\" of type text and \"last_number\" of type bigint.",
                "Create a series with snowflake_create_series(), and insert the counters into its table.",
            ),
            SerialProblem::Step { series, next } => Report::of(
                PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
                format!("only the owner can set the counters of series {}", shown(series)),
                format!("Other roles can only take the next number of the period, which is {next}."),
                "Call snowflake_serial() to take the next number, or ask the owner of the series to set the counter.",
            ),
            SerialProblem::ManyGaps { column, most } => Report::of(
                PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
                format!("column {} has more than {most} gaps", shown(column)),
                "",
                "Check that the column contains the serials of this series.",
            ),
        }
    }
}

/// Returns a phrase that names the period, or an empty string for a series without periods.
fn in_period(period: &str) -> String {
    if period.is_empty() { String::new() } else { format!(" in period {period}") }
}
