//! Triggers that number the rows of a table at commit: their errors, and the notice of `snowflake_number_at_commit()`.
//!
//! Strings from users are converted to ASCII and truncated if they are long. Names of tables and columns are quoted for
//! use in a statement.

use pgrx::{PgLogLevel, PgSqlErrorCode};

use crate::message::report::Report;
use crate::pg::plain::WriteObstacle;
use crate::pg::relation::{identifier, shown, utf8};

/// Why a trigger does not number the rows of a table, or why it cannot be created.
#[derive(Clone, Debug)]
pub enum NumberProblem {
    /// The relation is of a kind whose rows cannot be numbered.
    NotATable { relation: String },
    /// The table has no such column.
    NoColumn { table: String, column: String, by_trigger: bool },
    /// The column is not of type `text` or `varchar`.
    NotText { column: String },
    /// The column is not of type `date` or `timestamptz`.
    NotADate { column: String },
    /// `snowflake_number_row()` was called by something other than a trigger that numbers rows.
    NotANumberTrigger,
    /// `snowflake_number_keep()` was called by something other than its trigger.
    NotAKeepTrigger,
    /// A partition already numbers its rows.
    Numbered { partition: String, trigger: String },
    /// The partitioned table to which the partition belongs already numbers the column.
    NumberedAbove { partition: String, parent: String },
    /// Triggers number this column from different series.
    SeveralSeries { table: String, column: String },
    /// The table no longer has a trigger that numbers this column, because the series was dropped.
    Gone { table: String, column: String, trigger: String },
    /// Writing a counter as the owner of the series could run other code.
    NotPlain { series: String, obstacle: WriteObstacle },
    /// The owner of a numbered table may not use the series. The names are quoted.
    TableOwner { table: String, owner: String, series: String },
    /// The role that writes a row is not allowed to write the row's number. The names are quoted.
    MayNotWrite { table: String, column: String, role: String },
    /// A trigger on the table prevented the row's serial from being stored.
    NotStored { table: String, serial: String },
    /// A statement writes a number that does not belong to the row, or removes a number.
    Kept { table: String, column: String, number: String, is_removed: bool, trigger: String },
}

impl NumberProblem {
    pub fn report(&self) -> Report {
        match self {
            NumberProblem::NotATable { relation } => Report::of(
                PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
                format!("cannot number the rows of {}", shown(relation)),
                "The relation is not a table.",
                "Pass a table or a partitioned table.",
            ),
            NumberProblem::NoColumn { table, column, by_trigger } => Report::of(
                PgSqlErrorCode::ERRCODE_UNDEFINED_COLUMN,
                format!("table {} has no column {}", shown(table), shown(column)),
                if *by_trigger { "The trigger that numbers the rows uses this column.".into() } else { String::new() },
                match by_trigger {
                    true => "Call snowflake_number_at_commit() with the new name of the column.",
                    false => "Pass the name of an existing column.",
                },
            ),
            NumberProblem::NotText { column } => Report::of(
                PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
                format!("column {} is not of type text or varchar", shown(column)),
                "Serials are text values.",
                "Pass a column of type text.",
            ),
            NumberProblem::NotADate { column } => Report::of(
                PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
                format!("column {} is not of type date or timestamptz", shown(column)),
                "The column determines the period of the number. A value of type timestamp depends on the time zone of the session.",
                "Pass a column of type date or timestamptz.",
            ),
            NumberProblem::NotANumberTrigger => Report::of(
                PgSqlErrorCode::ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED,
                "function snowflake_number_row() was not called by a trigger that numbers rows",
                "Such triggers are created by snowflake_number_at_commit().",
                "Drop the trigger, and call snowflake_number_at_commit() with the table as its argument.",
            ),
            NumberProblem::NotAKeepTrigger => Report::of(
                PgSqlErrorCode::ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED,
                "function snowflake_number_keep() was not called by a trigger that keeps numbers",
                "Such triggers are created by snowflake_number_at_commit().",
                "Drop the trigger, and call snowflake_number_at_commit() with the table as its argument.",
            ),
            NumberProblem::Numbered { partition, trigger } => Report::of(
                PgSqlErrorCode::ERRCODE_DUPLICATE_OBJECT,
                format!("partition {} already numbers its rows", shown(partition)),
                format!("The partition has its own trigger {}.", shown(trigger)),
                "Drop this trigger and trigger \"snowflake_number_keep\" on the partition.",
            ),
            NumberProblem::NumberedAbove { partition, parent } => Report::of(
                PgSqlErrorCode::ERRCODE_DUPLICATE_OBJECT,
                format!(
                    "partitioned table {} already numbers the rows of partition {}",
                    shown(parent),
                    shown(partition)
                ),
                "",
                "Number either the partitioned table or its partitions.",
            ),
            NumberProblem::SeveralSeries { table, column } => Report::of(
                PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("column {} of table {} is numbered by several series", shown(column), shown(table)),
                "The table's triggers use different series. If the table is a partition, some of the triggers might \
                 come from the partitioned table.",
                "Drop the triggers of one series, for example those on the partition.",
            ),
            NumberProblem::Gone { table, column, trigger } => Report::of(
                PgSqlErrorCode::ERRCODE_UNDEFINED_TABLE,
                format!("the series that numbers column {} of table {} does not exist", shown(column), shown(table)),
                "The trigger that numbered the rows was dropped together with the series.",
                format!(
                    "Call snowflake_number_at_commit() with a different series. If the rows do not need numbers, drop \
                     trigger {}.",
                    shown(trigger)
                ),
            ),
            NumberProblem::NotPlain { series, obstacle } => Report::of(
                PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("series {} cannot be used to number the rows of a table", shown(series)),
                format!(
                    "{} Code that belongs to a different role could run with the privileges of the owner of the \
                     series.",
                    found(obstacle)
                ),
                "Restore the series to the form in which snowflake_create_series() created it. Alternatively, use \
                 snowflake_serial() as the default of the column.",
            ),
            NumberProblem::TableOwner { table, owner, series } => Report::of(
                PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
                format!("the owner of table {} is not allowed to use series {}", shown(table), shown(series)),
                format!("Role {} does not have the TRIGGER privilege on the series.", shown(owner)),
                format!("As the owner of the series, run GRANT TRIGGER ON {series} TO {owner}."),
            ),
            NumberProblem::MayNotWrite { table, column, role } => Report::of(
                PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
                format!("role {} is not allowed to number rows of table {}", shown(role), shown(table)),
                format!(
                    "The number is written with the privileges of this role, which lacks SELECT on the table or UPDATE on column {}.",
                    shown(column)
                ),
                format!("As the owner of the table, run GRANT SELECT, UPDATE ({column}) ON {table} TO {role}."),
            ),
            NumberProblem::NotStored { table, serial } => Report::of(
                PgSqlErrorCode::ERRCODE_TRIGGERED_DATA_CHANGE_VIOLATION,
                format!("serial \"{serial}\" was not stored in {}", shown(table)),
                "A trigger, rule or policy on the table skipped or changed the update that stores the serial.",
                "Make sure that BEFORE UPDATE triggers return the row with the serial, and that policies make the row \
                 visible to the role that inserts it.",
            ),
            NumberProblem::Kept { table, column, number, is_removed, trigger } => Report::of(
                PgSqlErrorCode::ERRCODE_GENERATED_ALWAYS,
                match is_removed {
                    true => format!(
                        "cannot remove number \"{number}\" from column {} of table {}",
                        shown(column),
                        shown(table)
                    ),
                    false => format!(
                        "cannot write number \"{number}\" into column {} of table {}",
                        shown(column),
                        shown(table)
                    ),
                },
                "Only the trigger that numbers the rows can write to this column. Writing a number that the trigger \
                 has not issued could prevent it from issuing this number later.",
                format!(
                    "Do not set the column. To import rows that have numbers, the owner of the table can temporarily \
                     disable trigger {}.",
                    shown(trigger)
                ),
            ),
        }
    }
}

/// Notifies the user that a different series numbered the column until now.
pub fn replaced(table: &str, column: &str, series: &str) {
    let notice = Report::of(
        PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
        format!("series {} no longer numbers column {} of table {}", shown(series), shown(column), shown(table)),
        "The trigger that used this series was replaced.",
        "A column can have only one series. If the rows of a table need several series, number the partitions of the \
         table.",
    );
    notice.send(PgLogLevel::NOTICE);
}

/// Returns a sentence that describes why a series cannot number rows as its owner.
fn found(obstacle: &WriteObstacle) -> String {
    let what = match obstacle {
        WriteObstacle::Kind => return "The series is not an ordinary table.".into(),
        WriteObstacle::Trigger(name) => format!("trigger {}", shown(&identifier(&utf8(name)))),
        WriteObstacle::Columns => "columns other than \"period\" and \"last_number\", or columns of other types".into(),
        WriteObstacle::Rule => "a rule".into(),
        WriteObstacle::Policies => "row-level security enabled".into(),
        WriteObstacle::Check => "a CHECK constraint".into(),
        WriteObstacle::Default => "a column with a default".into(),
        WriteObstacle::Index => "an index other than the primary key, or no primary key".into(),
    };
    format!("The series has {what}.")
}
