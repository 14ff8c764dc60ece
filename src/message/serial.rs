//! The errors about series and serials.

use flake::serial::{MAX_DIGITS, MAX_TEMPLATE, NotASerial, TemplateError};
use pgrx::PgSqlErrorCode::{
    ERRCODE_DATATYPE_MISMATCH, ERRCODE_DATETIME_FIELD_OVERFLOW, ERRCODE_DUPLICATE_OBJECT,
    ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED, ERRCODE_GENERATED_ALWAYS, ERRCODE_INSUFFICIENT_PRIVILEGE,
    ERRCODE_INVALID_PARAMETER_VALUE, ERRCODE_INVALID_TABLE_DEFINITION, ERRCODE_NAME_TOO_LONG,
    ERRCODE_NULL_VALUE_NOT_ALLOWED, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, ERRCODE_PROGRAM_LIMIT_EXCEEDED,
    ERRCODE_READ_ONLY_SQL_TRANSACTION, ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED, ERRCODE_SUCCESSFUL_COMPLETION,
    ERRCODE_T_R_SERIALIZATION_FAILURE, ERRCODE_TRIGGERED_DATA_CHANGE_VIOLATION, ERRCODE_UNDEFINED_COLUMN,
    ERRCODE_UNDEFINED_TABLE, ERRCODE_WRONG_OBJECT_TYPE,
};

use crate::message::reasons::Sentences;
use crate::message::serial_problem::SerialProblem;
use crate::pg::plain::Obstacle;
use crate::pg::relation::{identifier, shown, utf8};
use crate::pg::timestamp;

/// Returns what is wrong with a series, a serial, or a trigger that numbers rows.
pub fn report(problem: &SerialProblem) -> Sentences {
    let argument = ERRCODE_INVALID_PARAMETER_VALUE;
    match problem {
        SerialProblem::Null { argument, example } => (
            ERRCODE_NULL_VALUE_NOT_ALLOWED,
            format!("argument \"{argument}\" must not be null"),
            String::new(),
            format!("Pass a value, for example {example}."),
        ),
        SerialProblem::Template { text, error } => (
            argument,
            format!("\"{text}\" is not a valid template"),
            template_detail(error),
            "Pass literal text with the fields {YYYY} or {YY}, {MM}, {DD}, {HH} and exactly one {n:width}, for example \
             'INV-{YYYY}-{n:5}'."
                .into(),
        ),
        SerialProblem::Kind { kind, kinds } => {
            (argument, format!("unknown kind of series \"{kind}\""), String::new(), format!("The kinds are: {kinds}."))
        }
        SerialProblem::Zone { zone } => (
            argument,
            format!("time zone \"{zone}\" not recognized"),
            String::new(),
            "Pass a name from view \"pg_timezone_names\", for example 'Europe/Berlin'.".into(),
        ),
        SerialProblem::LocalZone { zone } => (
            argument,
            format!("time zone \"{zone}\" depends on the server"),
            "The name stands for the time zone that this server's operating system is set to, or exists only in some installations.".into(),
            "Pass the name of a place or \"UTC\" from view \"pg_timezone_names\", for example 'Europe/Berlin'.".into(),
        ),
        SerialProblem::Start { start, max } => (
            argument,
            format!("first number {start} is out of range"),
            format!("The template has room for numbers from 0 to {max}."),
            "Pass a number in that range, or a template with a wider number.".into(),
        ),
        SerialProblem::Name { name } => (
            argument,
            format!("\"{name}\" is not the name of a table"),
            "A series is a table, which has a name and, optionally, a schema.".into(),
            "Pass a name such as 'invoice' or 'accounting.invoice'.".into(),
        ),
        SerialProblem::LongName { series, bytes, most } => (
            ERRCODE_NAME_TOO_LONG,
            format!("the name of series {} is too long for kind \"dense\"", shown(series)),
            format!("The schema and the name have {bytes} bytes in UTF-8, with a dot and quotes. At most {most} are possible."),
            "Pass a shorter name.".into(),
        ),
        SerialProblem::Temporary { series } => (
            ERRCODE_INVALID_TABLE_DEFINITION,
            format!("temporary table {} cannot be a series of kind \"dense\"", shown(series)),
            "The segments of a series remain in the registry, and all servers of the fleet share them.".into(),
            "Create the series in a schema that is not temporary, or use kind \"gapless\".".into(),
        ),
        SerialProblem::OwnerMayNotDraw { series, owner, function } => (
            ERRCODE_INSUFFICIENT_PRIVILEGE,
            format!("the owner of series {} is not allowed to draw numbers of segments", shown(series)),
            format!("Role {} does not have the privilege EXECUTE on function {function}.", shown(owner)),
            format!("As the owner of the extension, run GRANT EXECUTE ON FUNCTION {function} TO {owner}."),
        ),
        SerialProblem::NotHolder { series, tag, label } => (
            ERRCODE_INSUFFICIENT_PRIVILEGE,
            format!("series {} is not allowed to draw from tag \"{tag}\"", shown(series)),
            "The table does not have the security label that snowflake_create_series() sets.".into(),
            format!(
                "If the table is to have this tag, run SECURITY LABEL FOR snowflake_pg ON TABLE {series} IS {label} as a superuser. If the \
                 tag is the name of the table, the owner of the table can also run this statement."
            ),
        ),
        SerialProblem::Label { label } => (
            ERRCODE_INSUFFICIENT_PRIVILEGE,
            format!("permission denied to set security label \"{label}\""),
            "The label allows a series of kind \"dense\" to draw from the tag of this name.".into(),
            "Run the statement as a superuser, or set the schema and the name of the table as its label.".into(),
        ),
        SerialProblem::SharedTag { series, other } => (
            ERRCODE_DUPLICATE_OBJECT,
            format!("series {} would share the numbers of series {}", shown(series), shown(other)),
            "Only one table of a database can draw from a tag. The second series was renamed or restored from a dump.".into(),
            "Use a different name, or drop the second series.".into(),
        ),
        SerialProblem::NotASeries { relation } => (
            ERRCODE_WRONG_OBJECT_TYPE,
            format!("{} is not a series", shown(relation)),
            String::new(),
            "Pass a series from view \"snowflake_series\", or create one with snowflake_create_series().".into(),
        ),
        SerialProblem::Definition { series } => (
            ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("the definition of series {} is invalid", shown(series)),
            "The arguments of its trigger \"snowflake_series\" are not those that snowflake_create_series() writes.".into(),
            "Create the trigger again with the arguments of the original definition, for example from a dump.".into(),
        ),
        SerialProblem::OtherPeriods { series } => (
            ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("cannot change the periods of series {}", shown(series)),
            "The series has issued numbers, or this transaction cannot see whether it has. The new template has other fields of time."
                .into(),
            "Create another series with the new template, and use it from the beginning of a period on.".into(),
        ),
        SerialProblem::Fixed { series, part, is_dense } => (
            ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("cannot change the {part} of series {}", shown(series)),
            match is_dense {
                true => "The servers that share a series of kind \"dense\" must agree on it.",
                false => "The series has issued numbers, or this transaction cannot see whether it has.",
            }
            .into(),
            match is_dense {
                true => "Create another series with another name.",
                false => {
                    "Create another series. To begin one period with another number, insert the row of the period into the table of the \
                     series, with the number before it as \"last_number\"."
                }
            }
            .into(),
        ),
        SerialProblem::Dense { series } => (
            ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("series {} has no counters", shown(series)),
            "Its kind is \"dense\": the numbers are issued by the registry, and can be missing.".into(),
            "Use a series of kind \"gapless\".".into(),
        ),
        SerialProblem::Ambiguous { series, template } => (
            argument,
            format!("template \"{template}\" is ambiguous for series {}", shown(series)),
            "A serial of this template can be the same text as a serial of the current template.".into(),
            "Pass a template with a different literal text or a different length.".into(),
        ),
        SerialProblem::Standby => (
            ERRCODE_READ_ONLY_SQL_TRANSACTION,
            "cannot issue a serial during recovery".into(),
            "The server is a standby or has not finished recovery yet.".into(),
            "Run the statement on the primary.".into(),
        ),
        SerialProblem::Year { at, years } => (
            ERRCODE_DATETIME_FIELD_OVERFLOW,
            format!("time {} does not fit the template of the series", timestamp::utc(*at)),
            format!("The template can represent years from {} to {}.", years.first, years.last),
            "Pass a time in one of these years. {YY} represents years of the 21st century, and {YYYY} represents four digits.".into(),
        ),
        SerialProblem::DateForHours { series } => (
            argument,
            format!("a date does not determine the period of series {}", shown(series)),
            "The template of the series contains the hour.".into(),
            "Pass a value of type timestamptz.".into(),
        ),
        SerialProblem::Overflow { series, period, number, max } => (
            ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED,
            format!("series {} has no number left{}", shown(series), in_period(period)),
            format!("The next number is {number}. The template has room for numbers up to {max}."),
            "Call snowflake_alter_series() with a template that has a wider number. The series then continues with this number.".into(),
        ),
        SerialProblem::NotASerial { text, series, template, error } => (
            argument,
            format!("\"{text}\" is not a serial of series {}", shown(series)),
            match error {
                NotASerial::Form => format!("It does not have the form of the template \"{template}\"."),
                NotASerial::Time => "It contains a time that does not exist.".into(),
            },
            "Pass a text that snowflake_serial() has returned for this series.".into(),
        ),
        SerialProblem::Row { series, period } => (
            argument,
            format!("a row with period \"{period}\" is not a counter of series {}", shown(series)),
            "A counter has a period in the form that the template requires, and a last number that is not negative.".into(),
            "Insert a period in the form that snowflake_serial_parse() returns.".into(),
        ),
        SerialProblem::AboveTemplate { series, period, last, max } => (
            ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED,
            format!("the counter of series {} is above the last number of its template", shown(series)),
            format!("The counter{} is {last}. The template has room for numbers up to {max}.", in_period(period)),
            "Use a template with a wider number, or set a lower counter.".into(),
        ),
        SerialProblem::Lowered { series, period, from, to } => (
            ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("cannot lower the counter of series {} from {from} to {to}", shown(series)),
            format!("The numbers between them would be issued again{}.", in_period(period)),
            "Set a higher number. If none of these numbers is in use, the owner can disable trigger \"snowflake_series\" \
             for this change."
                .into(),
        ),
        SerialProblem::Removed { series } => (
            ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("cannot remove a counter of series {}", shown(series)),
            "The series would issue the numbers of the period again, from the first one on.".into(),
            "Keep the rows of earlier periods. To remove the whole series, drop the table.".into(),
        ),
        SerialProblem::NotASeriesTrigger => (
            ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED,
            "function snowflake_series_row() was not called by a series".into(),
            "A series is a table that snowflake_create_series() has created, with its triggers.".into(),
            "Drop the trigger, and call snowflake_create_series().".into(),
        ),
        SerialProblem::NotANumberTrigger => (
            ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED,
            "function snowflake_number_row() was not called by a trigger that numbers rows".into(),
            "Such a trigger is one that snowflake_number_at_commit() has created.".into(),
            "Drop the trigger, and call snowflake_number_at_commit() with the table as its argument.".into(),
        ),
        SerialProblem::NotAKeepTrigger => (
            ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED,
            "function snowflake_number_keep() was not called by a trigger that keeps numbers".into(),
            "Such a trigger is one that snowflake_number_at_commit() has created.".into(),
            "Drop the trigger, and call snowflake_number_at_commit() with the table as its argument.".into(),
        ),
        SerialProblem::NotATable { relation } => (
            ERRCODE_WRONG_OBJECT_TYPE,
            format!("cannot number the rows of {}", shown(relation)),
            "It is not a table.".into(),
            "Pass a table or a partitioned table.".into(),
        ),
        SerialProblem::NoColumn { table, column, by_trigger } => (
            ERRCODE_UNDEFINED_COLUMN,
            format!("table {} has no column {}", shown(table), shown(column)),
            if *by_trigger { "The trigger that numbers the rows uses this column.".into() } else { String::new() },
            match by_trigger {
                true => "Call snowflake_number_at_commit() with the new name of the column.",
                false => "Pass the name of an existing column.",
            }
            .into(),
        ),
        SerialProblem::NotText { column } => (
            ERRCODE_DATATYPE_MISMATCH,
            format!("column {} is not of type text or varchar", shown(column)),
            "Serials are texts.".into(),
            "Pass a column of type text.".into(),
        ),
        SerialProblem::NotADate { column } => (
            ERRCODE_DATATYPE_MISMATCH,
            format!("column {} is not of type date or timestamptz", shown(column)),
            "The column determines the period of the number. A value of type timestamp depends on the time zone of the session.".into(),
            "Pass a column of type date or timestamptz.".into(),
        ),
        SerialProblem::Gone { table, column, trigger } => (
            ERRCODE_UNDEFINED_TABLE,
            format!("the series that numbers column {} of table {} does not exist", shown(column), shown(table)),
            "PostgreSQL has dropped the trigger that numbers the rows, together with its series.".into(),
            format!(
                "Call snowflake_number_at_commit() with another series. If the rows need no numbers, drop trigger {}.",
                shown(trigger)
            ),
        ),
        SerialProblem::TableOwner { table, owner, series } => (
            ERRCODE_INSUFFICIENT_PRIVILEGE,
            format!("the owner of table {} is not allowed to use series {}", shown(table), shown(series)),
            format!("Role {} does not have the privilege TRIGGER on the series.", shown(owner)),
            format!("As the owner of the series, run GRANT TRIGGER ON {series} TO {owner}."),
        ),
        SerialProblem::MayNotWrite { table, column, role } => (
            ERRCODE_INSUFFICIENT_PRIVILEGE,
            format!("role {} is not allowed to number rows of table {}", shown(role), shown(table)),
            format!(
                "The number is written with the privileges of this role, which lacks SELECT on the table or UPDATE on column {}.",
                shown(column)
            ),
            format!("As the owner of the table, run GRANT SELECT, UPDATE ({column}) ON {table} TO {role}."),
        ),
        SerialProblem::NameChanged { series } => (
            ERRCODE_T_R_SERIALIZATION_FAILURE,
            format!("the name of series {} changed during the call", shown(series)),
            "A different session has renamed its schema.".into(),
            "Retry the transaction.".into(),
        ),
        SerialProblem::NumberedAbove { partition, parent } => (
            ERRCODE_DUPLICATE_OBJECT,
            format!("partitioned table {} already numbers the rows of partition {}", shown(parent), shown(partition)),
            String::new(),
            "Number either the partitioned table or its partitions.".into(),
        ),
        SerialProblem::SeveralSeries { table, column } => (
            ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("column {} of table {} is numbered by several series", shown(column), shown(table)),
            "Triggers of the table name different series. If the table is a partition, one of them can be from the partitioned table."
                .into(),
            "Drop the triggers of one series, for example those of the partition.".into(),
        ),
        SerialProblem::Numbered { partition, trigger } => (
            ERRCODE_DUPLICATE_OBJECT,
            format!("partition {} already numbers its rows", shown(partition)),
            format!("It has trigger {} of its own.", shown(trigger)),
            "Drop this trigger, and trigger \"snowflake_number_keep\" of the partition.".into(),
        ),
        SerialProblem::Kept { table, column, number, is_removed, trigger } => (
            ERRCODE_GENERATED_ALWAYS,
            match is_removed {
                true => format!("cannot remove number \"{number}\" from column {} of table {}", shown(column), shown(table)),
                false => format!("cannot write number \"{number}\" into column {} of table {}", shown(column), shown(table)),
            },
            "Only the trigger that numbers the rows writes this column. A number that it has not issued could keep it from issuing this \
             number later."
                .into(),
            format!(
                "Do not set the column. To import rows that have numbers, the owner of the table can disable trigger {} meanwhile.",
                shown(trigger)
            ),
        ),
        SerialProblem::NotPlain { series, obstacle } => (
            ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("series {} cannot number the rows of a table", shown(series)),
            format!("{} Code of a different role could run with the rights of the owner of the series.", found(obstacle)),
            "Remove it. Alternatively, use snowflake_serial() as the default of the column.".into(),
        ),
        SerialProblem::Columns { series } => (
            ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("the columns of series {} are invalid", shown(series)),
            "A series needs the columns \"period\" of type text and \"last_number\" of type bigint.".into(),
            "Create a series with snowflake_create_series(), and insert the counters into its table.".into(),
        ),
        SerialProblem::Step { series, next } => (
            ERRCODE_INSUFFICIENT_PRIVILEGE,
            format!("only the owner can set the counters of series {}", shown(series)),
            format!("Other roles can only take the next number of the period, which is {next}."),
            "Call snowflake_serial() to take the next number, or let the owner of the series set the counter.".into(),
        ),
        SerialProblem::NotStored { table, serial } => (
            ERRCODE_TRIGGERED_DATA_CHANGE_VIOLATION,
            format!("serial \"{serial}\" was not stored in {}", shown(table)),
            "A trigger, a rule or a policy of the table skipped or changed the update that stores the serial.".into(),
            "Let triggers BEFORE UPDATE return the row with the serial, and policies show the row to the role that inserts it.".into(),
        ),
        SerialProblem::ManyGaps { column, most } => (
            ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            format!("column {} has more than {most} gaps", shown(column)),
            String::new(),
            "Check that the column contains the serials of this series.".into(),
        ),
    }
}

/// Returns the notice about a column that a different series has numbered.
pub fn replaced(table: &str, column: &str, series: &str) -> Sentences {
    (
        ERRCODE_SUCCESSFUL_COMPLETION,
        format!("series {} no longer numbers column {} of table {}", shown(series), shown(column), shown(table)),
        "The trigger with this series was replaced.".into(),
        "A column has one series. If the rows of one table need several series, number its partitions.".into(),
    )
}

/// Returns the sentence about a property of a series that keeps it from numbering rows as its owner.
fn found(obstacle: &Obstacle) -> String {
    let what = match obstacle {
        Obstacle::Kind => return "It is not an ordinary table.".into(),
        Obstacle::Trigger(name) => format!("trigger {}", shown(&identifier(&utf8(name)))),
        Obstacle::Columns => "other columns than \"period\" and \"last_number\", or other types".into(),
        Obstacle::Rule => "a rule".into(),
        Obstacle::Policies => "row security enabled".into(),
        Obstacle::Check => "a CHECK constraint".into(),
        Obstacle::Default => "a column with a default".into(),
        Obstacle::Index => "an index beside the primary key, or no primary key".into(),
    };
    format!("It has {what}.")
}

/// Returns the words that name a period, or an empty text for a series without periods.
fn in_period(period: &str) -> String {
    if period.is_empty() { String::new() } else { format!(" in period {period}") }
}

/// Returns the reason why a text is not a template.
fn template_detail(error: &TemplateError) -> String {
    match error {
        TemplateError::Long { length } => format!("It has {length} bytes. The maximum is {MAX_TEMPLATE}."),
        TemplateError::Brace { position } => format!("The brace at byte {position} does not belong to a field."),
        TemplateError::Width => format!("The number needs a width from 1 to {MAX_DIGITS} digits."),
        TemplateError::NoNumber => "It does not contain {n:width}.".into(),
        TemplateError::Twice { field } => format!("It contains {field} or the same part of the time more than once."),
        TemplateError::Lacks { field, needs } => {
            format!("It contains {field} but not {needs}, so the serials of different periods would be equal.")
        }
    }
}
