//! Issuing IDs: the errors of a server that cannot issue IDs, and of the functions that issue them.

use flake::Layout;
use pgrx::PgSqlErrorCode;

use crate::message::report::Report;

/// Why no ID can be issued.
#[derive(Clone, Debug)]
pub enum IssueProblem {
    /// The server is in recovery.
    Standby,
    /// `count` is out of range. The sentences in `more` explain how to get more IDs or why no more are available.
    Count { count: i32, max: u64, more: &'static str },
    /// The layout does not have consecutive IDs that could be reserved.
    NotConsecutive { layout: Layout },
    /// No ID has been issued to this session.
    NoCurrentId,
}

impl IssueProblem {
    pub fn report(&self) -> Report {
        match self {
            IssueProblem::Standby => Report::of(
                PgSqlErrorCode::ERRCODE_READ_ONLY_SQL_TRANSACTION,
                "cannot issue an ID during recovery",
                "The server is a standby or has not finished recovery yet.",
                "Run the statement on the primary.",
            ),
            IssueProblem::Count { count, max, more } => Report::of(
                PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
                format!("count {count} is out of range"),
                format!("The count must be from 1 to {max}."),
                if *count < 1 { "Pass a count in that range." } else { more },
            ),
            IssueProblem::NotConsecutive { layout } => Report::of(
                PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
                format!("cannot reserve consecutive IDs with layout \"{layout}\""),
                "The sequence is not the least significant field of this layout.",
                "Use snowflake_nextval_batch(), or use a layout in which the sequence is the least significant field.",
            ),
            IssueProblem::NoCurrentId => Report::of(
                PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "no ID has been issued in this session yet",
                "",
                "Call snowflake_nextval() first.",
            ),
        }
    }
}

/// Logs an error that every session will raise, as a warning.
pub fn refused(report: Report) {
    report.warn("cannot issue IDs: ");
}
