//! Partitions by the time of their IDs: the errors of the functions that create and find them.

use pgrx::PgSqlErrorCode;

use crate::message::report::Report;
use crate::pg::{relation, timestamp};

/// Why a partition cannot be created or found.
#[derive(Clone, Debug)]
pub enum PartitionProblem {
    /// An interval cannot be used as the length of a partition.
    Step { problem: StepProblem },
    /// A table is not partitioned by ranges of IDs.
    Key { table: String },
    /// The transaction may not see all existing partitions, so it cannot create the missing ones.
    Transaction,
    /// A bound of a partition is after the last date that the calendar library supports.
    Calendar { at: i128 },
}

/// Why an interval cannot be used as the length of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepProblem {
    NotPositive,
    /// The interval is longer than a 64-bit number of microseconds.
    TooLong,
    UnderATick,
    /// The interval combines months with days or hours.
    Mixed,
    /// The interval is not a whole number of minutes, but the names of partitions do not contain seconds.
    NotMinutes,
}

impl PartitionProblem {
    pub fn report(&self) -> Report {
        match self {
            PartitionProblem::Step { problem } => Report::of(
                PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
                "interval cannot be used as the length of a partition",
                step_detail(*problem),
                "Pass either a whole number of months or a combination of whole days, hours and minutes, for example '1 \
                 day'.",
            ),
            PartitionProblem::Key { table } => Report::of(
                PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
                format!("{} is not partitioned by ranges of IDs", relation::shown(table)),
                "The table must be partitioned by RANGE on one column of type bigint.",
                "Pass a table that was created with PARTITION BY RANGE (id).",
            ),
            PartitionProblem::Transaction => Report::of(
                PgSqlErrorCode::ERRCODE_ACTIVE_SQL_TRANSACTION,
                "cannot create partitions in this transaction",
                "The transaction uses a single snapshot for all statements, so it might not see partitions that other \
                 sessions have created.",
                "Call snowflake_create_partitions() in a transaction with isolation level READ COMMITTED.",
            ),
            PartitionProblem::Calendar { at } => Report::of(
                PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
                format!("time {} is out of range for partitions", timestamp::utc(*at)),
                "Partitions can cover times up to the end of the year 9999.",
                "Pass an earlier time, or request fewer partitions.",
            ),
        }
    }
}

/// Returns the reason why an interval cannot be used as the length of a partition.
fn step_detail(problem: StepProblem) -> &'static str {
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
