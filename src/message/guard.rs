//! Guards on tables: the errors for rows that a guard refuses, and for tables that cannot have a guard.

use pgrx::PgSqlErrorCode;

use crate::message::report::Report;
use crate::message::{argument, pages};
use crate::pg::{relation, timestamp};

/// Why a guard refuses a row, or why a table cannot have a guard.
#[derive(Clone, Debug)]
pub enum GuardProblem {
    /// A replicated row has an ID, issued at `at`, that only this server can have issued. `name` is this server's worker
    /// ID and datacenter ID as text. `first` is the first ID with this worker ID that the guard refuses, and `since` is
    /// the time of that ID.
    Row { id: i64, at: i128, name: String, first: i64, since: i128 },
    /// Relations of this kind cannot have a guard. `kind` is the name of the kind, in the plural.
    Kind { kind: &'static str },
    /// The column that contains the IDs cannot be determined.
    NoKey,
    /// The table does not have the column with this quoted name. `renamed` is true if the guard previously used it.
    NoColumn { column: String, renamed: bool },
    /// The column is not of type `bigint`. Its name is quoted.
    NotBigint { column: String },
    /// `snowflake_guard_row()` was called by something other than a guard.
    NotAGuard,
}

impl GuardProblem {
    /// Returns the error report. The name of the table is quoted.
    pub fn report(&self, table: &str) -> Report {
        let shown = relation::shown(table);
        match self {
            GuardProblem::Row { id, at, name, first, since } => Report::of(
                PgSqlErrorCode::ERRCODE_INTEGRITY_CONSTRAINT_VIOLATION,
                "replicated row has the worker ID of this server",
                format!(
                    "The row in {shown} has ID {id}, which was issued at {} with {name}. This server also has {name}. \
                     The guard accepts rows with this worker ID only if their IDs are below {first}, that is, if they \
                     were issued before {}.",
                    timestamp::utc(*at),
                    timestamp::utc(*since),
                ),
                format!(
                    "Find out which server issued the ID. If another server has {name}, disable the subscriptions \
                     between the two servers before you give one of them a different worker ID. If this server issued \
                     the ID, prevent rows that originated on this server from being replicated back to it. Follow {}.",
                    pages::ERRORS.section("replicated row has the worker ID of this server")
                ),
            ),
            GuardProblem::Kind { kind } => Report::of(
                PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
                format!("cannot create a guard on {shown}"),
                format!("Guards are not supported for {kind}."),
                "Pass a table or a partitioned table whose rows are replicated.",
            ),
            GuardProblem::NoKey => Report::of(
                PgSqlErrorCode::ERRCODE_UNDEFINED_COLUMN,
                format!("could not determine which column of {shown} contains IDs"),
                "The table does not have exactly one column with the default snowflake_nextval(), and its primary key \
                 is not a single column of type bigint.",
                "Pass the name of the column as argument \"key\".",
            ),
            GuardProblem::NoColumn { column, renamed } => {
                let mut report = argument::no_column(table, column, " of type bigint");
                if *renamed {
                    report.hint =
                        "Call snowflake_guard() with the table and the name of the column that contains the IDs."
                            .into();
                }
                report
            }
            GuardProblem::NotBigint { column } => Report::of(
                PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
                format!("column {} is not of type bigint", relation::shown(column)),
                "A guard can check only IDs of type bigint.",
                "Pass a column of type bigint. A guard cannot check IDs that are stored as text.",
            ),
            GuardProblem::NotAGuard => Report::of(
                PgSqlErrorCode::ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED,
                "function snowflake_guard_row() was not called by a guard",
                "A guard is a trigger that snowflake_guard() has created.",
                "Drop the trigger, and call snowflake_guard() with the table as its argument.",
            ),
        }
    }
}
