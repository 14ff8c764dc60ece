//! The high-water mark: the errors for a mark that is missing, wrong or not durable, the errors of
//! `snowflake_set_mark()`, and the log messages.

use flake::{IdFormat, Layout, Nanos};
use pgrx::PgSqlErrorCode;

use crate::message::pages;
use crate::message::report::{Report, log, log_with_hint, warn_of};
use crate::pg::{relation, setting, timestamp, versions};

/// Why no ID can be issued because of the high-water mark. Times are in microseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkProblem {
    /// The background worker that creates the replication origin has not run yet.
    NotMade,
    /// No slot is available for the background worker that creates the replication origin.
    NoPlace,
    /// The background worker found no free replication state.
    NoFreeState,
    /// The replication origin was dropped.
    Dropped,
    /// The replication origin exists but has lost its progress.
    NoProgress,
    /// The progress of the replication origin was set back.
    SetBack,
    /// Another session has set up the replication origin. Until that session ends, no other session can change the progress.
    InUse,
    /// The high-water mark is more than one day ahead of the clock. It can be the mark in the witness, which is then
    /// above the mark in the data directory. `mark` is the time of the first ID that is not below the mark.
    Ahead { of_witness: bool, mark: i128, clock: i128, format: IdFormat },
    /// The next ID cannot be issued until the mark is durable. The wait began at `since`.
    Waits { cause: WaitCause, since: i128 },
    /// The server cannot store the progress of a replication origin, because [`versions::ORIGINS_SETTING`] is 0.
    NoOrigins,
}

/// The reason why a written mark is not durable yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitCause {
    /// The mark has not been flushed to the server's disk.
    Disk,
    /// The synchronous standby has not acknowledged the mark.
    Standby,
}

impl MarkProblem {
    pub fn report(&self) -> Report {
        let setting = versions::ORIGINS_SETTING;
        let missing = "the high-water mark is missing".to_string();
        match self {
            MarkProblem::NotMade => Report::of(
                PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                missing,
                "Replication origin \"snowflake_pg\" does not exist. Either background worker \"snowflake_pg mark worker\" has not \
                 created it yet, or it has been dropped.",
                "Check the server log for messages from the background worker. If there are none, make sure that the clock is ahead of \
                 the time of the last ID and that \"max_worker_processes\" is high enough to allow the background worker to \
                 start. Then restart the server.",
            ),
            MarkProblem::NoPlace => Report::of(
                PgSqlErrorCode::ERRCODE_CONFIGURATION_LIMIT_EXCEEDED,
                "no free slot for background worker \"snowflake_pg mark worker\"",
                "The background worker creates replication origin \"snowflake_pg\", which stores the high-water mark. All \
                 slots allowed by \"max_worker_processes\" are in use by other background workers.",
                "Increase \"max_worker_processes\" by 1 or more and restart the server.",
            ),
            MarkProblem::NoFreeState => Report::of(
                PgSqlErrorCode::ERRCODE_CONFIGURATION_LIMIT_EXCEEDED,
                "no free replication state for the high-water mark",
                "The high-water mark is stored as the progress of replication origin \"snowflake_pg\", which needs a replication \
                 state.",
                format!(
                    "Increase \"{setting}\" and restart the server, or drop a subscription and wait a few seconds."
                ),
            ),
            MarkProblem::Dropped => Report::of(
                PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                missing,
                "Replication origin \"snowflake_pg\" was dropped.",
                "Make sure that the clock is ahead of the time of the last ID, then restart the server. The server then creates \
                 the origin, and new IDs begin at the current clock time.",
            ),
            MarkProblem::SetBack => Report::of(
                PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "the high-water mark was set back",
                "The progress of replication origin \"snowflake_pg\" is behind IDs that this server might have issued.",
                "Call snowflake_set_mark() to set the mark above every ID that this server has issued.",
            ),
            MarkProblem::InUse => Report::of(
                PgSqlErrorCode::ERRCODE_OBJECT_IN_USE,
                "the high-water mark is in use by a session",
                "A session has called pg_replication_origin_session_setup('snowflake_pg').",
                "Terminate that session, or call pg_replication_origin_session_reset() in it.",
            ),
            MarkProblem::NoProgress => Report::of(
                PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                missing,
                "Replication origin \"snowflake_pg\" exists, but its progress has been lost.",
                "Call snowflake_set_mark() to set the mark above every ID that this server has issued.",
            ),
            MarkProblem::Ahead { of_witness, mark, clock, format } => Report::of(
                PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                match of_witness {
                    true => "the mark in the witness is more than a day ahead of the clock",
                    false => "the high-water mark is more than a day ahead of the clock",
                },
                format!(
                    "IDs with timestamps up to {} might have been issued, but the clock shows {}. The layout is \"{}\", and \
                     the epoch is {}. If the clock, the layout or the epoch is wrong, new IDs might duplicate existing IDs.",
                    timestamp::utc(*mark),
                    timestamp::utc(*clock),
                    format.layout,
                    timestamp::utc(format.instant(0)),
                ),
                format!(
                    "Check the server's clock, and check whether \"snowflake_pg.epoch\", \"snowflake_pg.layout\" or \
                     \"snowflake_pg.datacenter_id\" has been changed. If the clock and these settings are correct, either the clock \
                     was wrong earlier or the layout was changed on purpose. Changing the layout is safe only if no IDs issued with \
                     the old layout remain. In either case, set the mark with snowflake_set_mark(). See {}.",
                    pages::BAD_DAY.section("Issuing is refused")
                ),
            ),
            MarkProblem::Waits { cause, since } => waits(*cause, *since),
            MarkProblem::NoOrigins => Report::of(
                PgSqlErrorCode::ERRCODE_CONFIGURATION_LIMIT_EXCEEDED,
                format!("cannot store the high-water mark while \"{setting}\" is 0"),
                "The high-water mark is stored as the progress of a replication origin.",
                format!("Set \"{setting}\" to 1 or more, or remove \"snowflake_pg.worker_id\" from the configuration."),
            ),
        }
    }
}

/// Returns the error that the status shows while the next ID waits for the mark. It is never raised.
fn waits(cause: WaitCause, since: i128) -> Report {
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
    Report::of(PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, message, "", hint)
}

/// Why `snowflake_set_mark()` refuses a mark.
#[derive(Clone, Debug)]
pub enum SetMarkProblem {
    /// The requested mark is outside the range of the layout's IDs.
    Range { mark: i64, layout: Layout },
    /// The requested mark is more than one day ahead of the clock, whose time is in microseconds since the Unix epoch.
    TooHigh { mark: i64, clock: i128 },
    /// The transaction might not see all rows of the table with which the mark is compared.
    Transaction,
    /// The requested mark is lower than the current mark, and no table proves that it can be lowered safely.
    Lowered { mark: i64, current: u64 },
    /// A table contains IDs of this server at or above the requested mark. `highest` is the highest of them.
    BelowIds { mark: i64, table: String, highest: i64 },
}

impl SetMarkProblem {
    pub fn report(&self) -> Report {
        match self {
            SetMarkProblem::Range { mark, layout } => Report::of(
                PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
                format!("mark {mark} is out of range"),
                format!("The mark must be from 1 to {}, the largest ID of layout \"{layout}\".", layout.last_id()),
                "Pass the highest ID that might have been issued, plus 1.",
            ),
            SetMarkProblem::TooHigh { mark, clock } => Report::of(
                PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
                format!("mark {mark} is more than a day ahead of the clock"),
                format!(
                    "The clock shows {}. With this mark, the server would refuse to issue IDs.",
                    timestamp::utc(*clock)
                ),
                format!(
                    "Pass a mark whose timestamp is at most a day ahead of the clock. If any rows have IDs that are further \
                     ahead, first change those IDs or the worker ID of the server. See {}.",
                    pages::BAD_DAY.section("IDs from the future")
                ),
            ),
            SetMarkProblem::Transaction => Report::of(
                PgSqlErrorCode::ERRCODE_ACTIVE_SQL_TRANSACTION,
                "cannot compare a mark with the IDs in a table in this transaction",
                "The transaction might not see all rows because it either has already written data or uses a single snapshot.",
                "Call snowflake_set_mark() in a separate transaction with isolation level READ COMMITTED.",
            ),
            SetMarkProblem::Lowered { mark, current } => Report::of(
                PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("mark {mark} is below the high-water mark, which is {current}"),
                "If this mark were set, the server might again issue IDs that lie between the two marks.",
                "Pass a higher mark. To lower the mark on purpose, check the IDs in every other database, and then pass the table \
                 whose IDs must be below the mark, or a view that combines all such tables. To set the mark without comparing it \
                 with the IDs in a table, pass force => true.",
            ),
            SetMarkProblem::BelowIds { mark, table, highest } => Report::of(
                PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("mark {mark} is not above every ID issued by this server in {}", relation::shown(table)),
                format!(
                    "The highest of these IDs is {highest}. If this mark were set, the server might issue that ID again."
                ),
                format!(
                    "Pass a mark above this ID. If the timestamp of this ID is more than a day ahead of the clock, first change \
                     the ID of the row or the worker ID of the server. See {}.",
                    pages::BAD_DAY.section("IDs from the future")
                ),
            ),
        }
    }
}

/// Logs that the server has created the replication origin that stores the mark.
pub fn origin_created() {
    log_with_hint(
        "created replication origin \"snowflake_pg\" to store the high-water mark",
        "This is expected the first time that a server starts. If this server has issued IDs before, its previous origin was \
         dropped, and new IDs begin at the current clock time.",
        "If this server has issued IDs before, make sure that its clock is ahead of the time of the last ID that it issued.",
    );
}

/// Logs that a superuser has set the mark.
pub fn was_set(mark: u64, by_force: bool, previous: Option<u64>) {
    let previous = previous.map_or("missing".into(), |previous| previous.to_string());
    log(
        format!("the high-water mark was set to {mark}{}", if by_force { " by force" } else { "" }),
        format!("The previous mark was {previous}."),
    );
}

/// Warns that a session has been waiting since `since`, for the duration `waited`, for the mark to become durable. The
/// WAL record of the mark ends at `position`.
pub fn waiting(cause: WaitCause, since: i128, waited: Nanos, position: u64) {
    let Report { message, hint, .. } = waits(cause, since);
    warn_of(message, of_wait(cause, waited, position), hint);
}

/// Warns that a session has waited for the duration `waited` for the mark to be flushed. The mark is now durable.
pub fn flushed(waited: Nanos, position: u64) {
    let Report { hint, .. } = waits(WaitCause::Disk, 0);
    warn_of(
        "the high-water mark has been flushed to disk after a long wait",
        of_wait(WaitCause::Disk, waited, position),
        hint,
    );
}

fn of_wait(cause: WaitCause, waited: Nanos, position: u64) -> String {
    let seconds = format!("{:.1} s", waited as f64 / 1e9);
    let position = format!("{:X}/{:X}", position >> 32, position & 0xffff_ffff);
    match cause {
        WaitCause::Disk => {
            format!("A request for an ID has waited {seconds} for WAL to be flushed up to {position}.")
        }
        WaitCause::Standby => {
            let names = setting::configured(c"synchronous_standby_names").unwrap_or_default();
            format!(
                "A request for an ID has waited {seconds} for a synchronous standby to flush WAL up to {position}. \
                 Parameter \"synchronous_standby_names\" is \"{names}\"."
            )
        }
    }
}
