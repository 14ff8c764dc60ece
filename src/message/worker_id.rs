//! The configured worker ID and datacenter ID: the errors, and the warning for a standby whose worker ID is the same as
//! its primary's.

use flake::{Layout, Part};
use pgrx::PgSqlErrorCode;

use crate::message::pages;
use crate::message::report::{Report, warn_of};

/// Why this server's worker ID or datacenter ID cannot be used.
#[derive(Clone, Debug)]
pub enum WorkerIdProblem {
    /// `snowflake_pg.worker_id` is not set. `misnamed` is true if `snowflake.worker_id`, which has the wrong prefix, is.
    Unset { layout: Layout, misnamed: bool },
    /// Both `snowflake_pg.worker_id` and `snowflake_pg.registry` are set.
    AndRegistry { worker: u32 },
    /// The value of `snowflake_pg.worker_id` or `snowflake_pg.datacenter_id` is not a number between 0 and `max`. A larger
    /// number does not fit into this part of the layout.
    Number { part: Part, text: String, layout: Layout, max: u64 },
    /// Another server on this machine, with this postmaster, port and data directory, issues IDs with this server's
    /// worker ID. `name` is the worker ID and the datacenter ID as text.
    InUse { name: String, postmaster: i32, port: i32, directory: String },
}

impl WorkerIdProblem {
    pub fn report(&self) -> Report {
        match self {
            WorkerIdProblem::Unset { layout, misnamed } => Report::of(
                PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "parameter \"snowflake_pg.worker_id\" is not set",
                "",
                unset(layout, *misnamed),
            ),
            WorkerIdProblem::AndRegistry { worker } => Report::of(
                PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
                "parameters \"snowflake_pg.worker_id\" and \"snowflake_pg.registry\" are both set",
                format!("The worker ID is set to {worker}, but the registry assigns worker IDs."),
                "Remove \"snowflake_pg.worker_id\" from the configuration of every server of the fleet. To use a worker ID of \
                 your own choice, remove \"snowflake_pg.registry\".",
            ),
            WorkerIdProblem::Number { part, text, layout, max } => number(*part, text, layout, *max),
            WorkerIdProblem::InUse { name, postmaster, port, directory } => Report::of(
                PgSqlErrorCode::ERRCODE_OBJECT_IN_USE,
                format!("{name} is in use by another server on this machine"),
                format!(
                    "The worker ID is in use by the server with process ID {postmaster}, port {port} and data directory \
                     \"{directory}\"."
                ),
                "Stop one of the two servers, or give it a different worker ID and restart it.",
            ),
        }
    }
}

/// Returns the hint for a server whose worker ID is not set.
fn unset(layout: &Layout, misnamed: bool) -> String {
    let set = match layout.max(Part::Worker) {
        0 => format!(
            "Set \"snowflake_pg.worker_id\" to 0 in postgresql.conf and restart the server. The layout has no worker field, {}.",
            without_worker(layout)
        ),
        max => format!(
            "Set \"snowflake_pg.worker_id\" in postgresql.conf to a number from 0 to {max} that no other server uses, and \
             restart the server."
        ),
    };
    if misnamed {
        return format!(
            "{set} Parameter \"snowflake.worker_id\" is set, but this extension does not use it: rename it to \
             \"snowflake_pg.worker_id\"."
        );
    }
    set
}

/// Returns the error for a numeric setting whose value is not a number or does not fit into its field.
fn number(part: Part, text: &str, layout: &Layout, max: u64) -> Report {
    let (detail, hint) = match part {
        Part::Datacenter if !layout.has_datacenter() => (
            format!("Layout \"{layout}\" has no datacenter field."),
            "Remove the parameter, or choose a layout with a datacenter field, for example \"41:5:5:12\".",
        ),
        Part::Worker if max == 0 => (
            format!("Layout \"{layout}\" has no worker field, {}.", without_worker(layout)),
            "Set the parameter to 0, or choose a layout with a worker field, for example \"41:10:12\".",
        ),
        _ => (
            format!("To fit the {part} field of layout \"{layout}\", the value must be an integer from 0 to {max}."),
            "Specify an integer in that range, in decimal digits without leading zeros.",
        ),
    };
    Report::of(
        PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        format!("invalid value for parameter \"snowflake_pg.{part}_id\": \"{text}\""),
        detail,
        hint,
    )
}

/// Returns a clause that states how many servers can use a layout without a worker field.
fn without_worker(layout: &Layout) -> &'static str {
    match layout.has_datacenter() {
        true => "so servers are distinguished only by their datacenter IDs",
        false => "so only one server can use this layout",
    }
}

/// Warns that this standby and its primary have the same worker ID. This is not an error, because synchronous
/// replication makes it safe for both servers to have the same worker ID.
pub fn same_as_primary(name: &str) {
    warn_of(
        format!("this standby and its primary both have {name}"),
        "If the standby is promoted while the primary is still running, or before the standby has received all WAL from the \
         primary, both servers might issue the same IDs. This message might also mean that this server was previously the \
         primary, and that the new primary has not issued an ID yet.",
        format!(
            "Give this server its own worker ID, and set that ID in a configuration file outside the data directory. See {}.",
            pages::WORKER_IDS.section("Streaming replication")
        ),
    );
}
