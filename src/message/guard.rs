//! The errors of the guard of a table.

use pgrx::PgSqlErrorCode::{
    ERRCODE_DATATYPE_MISMATCH, ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED, ERRCODE_INTEGRITY_CONSTRAINT_VIOLATION,
    ERRCODE_UNDEFINED_COLUMN, ERRCODE_WRONG_OBJECT_TYPE,
};

use crate::message::error::GuardProblem;
use crate::message::pages;
use crate::message::reasons::{self, Sentences};
use crate::pg::{relation, timestamp};

/// Returns what the guard of a table reports.
pub fn report(table: &str, problem: &GuardProblem) -> Sentences {
    let shown = relation::shown(table);
    match problem {
        GuardProblem::Row { id, at, name, first, since } => (
            ERRCODE_INTEGRITY_CONSTRAINT_VIOLATION,
            "replicated row has the worker ID of this server".into(),
            format!(
                "The row of {shown} has ID {id}, which was issued at {} with {name}. This server has {name}. The guard accepts \
                 rows with this worker ID only if their IDs are below {first}, which were issued before {}.",
                timestamp::utc(*at),
                timestamp::utc(*since),
            ),
            format!(
                "Find out which server issued the ID. If another server has {name}, disable the subscriptions between the two \
                 servers before you give one of them a different worker ID. If this server issued the ID, do not let its rows \
                 return to it. Follow {}.",
                pages::ERRORS.section("replicated row has the worker ID of this server")
            ),
        ),
        GuardProblem::Kind { kind } => (
            ERRCODE_WRONG_OBJECT_TYPE,
            format!("cannot create a guard on {shown}"),
            format!("It is a {kind}."),
            "Pass a table or a partitioned table whose rows are replicated.".into(),
        ),
        GuardProblem::NoKey => (
            ERRCODE_UNDEFINED_COLUMN,
            format!("cannot tell which column of {shown} contains IDs"),
            "Neither does exactly one column have the default snowflake_nextval(), nor does the primary key consist of one \
             column of type bigint."
                .into(),
            "Pass the name of the column as argument \"key\".".into(),
        ),
        GuardProblem::NoColumn { column, renamed } => {
            let (code, message, detail, hint) = reasons::no_column(table, column, " of type bigint");
            let again = "Call snowflake_guard() with the table and with the name of the column that contains the IDs.";
            (code, message, detail, if *renamed { again.into() } else { hint })
        }
        GuardProblem::NotBigint { column } => (
            ERRCODE_DATATYPE_MISMATCH,
            format!("column {} is not of type bigint", relation::shown(column)),
            "A guard reads IDs of type bigint.".into(),
            "Pass a column of type bigint. There is no guard for IDs that are stored as text.".into(),
        ),
    }
}

/// Returns the error of a trigger function that was called by something other than a guard.
pub fn not_a_guard() -> Sentences {
    (
        ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED,
        "function snowflake_guard_row() was not called by a guard".into(),
        "A guard is a trigger that snowflake_guard() has created.".into(),
        "Drop the trigger, and call snowflake_guard() with the table as its argument.".into(),
    )
}
