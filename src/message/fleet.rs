//! The errors of sessions of a server with a registry.

use pgrx::PgSqlErrorCode;

use crate::message::error::Outage;
use crate::message::reasons::Sentences;
use crate::pg::timestamp;

/// Returns the error of a server that has no worker ID from the registry.
pub fn no_worker(outage: &Outage) -> Sentences {
    let again = "The server issues IDs as soon as it has a worker ID.";
    (
        PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        "the registry has not assigned a worker ID to this server".into(),
        heartbeats(outage),
        match what_to_do(outage) {
            None => format!("Retry in a few seconds. {again}"),
            Some(hint) => format!("{hint} {again}"),
        },
    )
}

/// Returns the error of a server that has used up its grant, because heartbeats fail or because its clock is wrong.
pub fn grant_ended(name: &str, until: i128, clock: i128, outage: &Outage) -> Sentences {
    (
        PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("the grant of {name} has ended"),
        format!(
            "The grant contains IDs up to {}, and the clock of this server shows {}. {}",
            timestamp::utc(until),
            timestamp::utc(clock),
            heartbeats(outage)
        ),
        match what_to_do(outage) {
            None => {
                "Check the clocks of this server and of the registry, and the high-water mark in view \"snowflake_status\"."
                    .into()
            }
            Some(hint) => format!("{hint} The server issues IDs again as soon as a heartbeat succeeds."),
        },
    )
}

/// Returns the error of a function that has checked IDs of a worker ID which the server does not have any more.
pub fn worker_changed() -> Sentences {
    (
        PgSqlErrorCode::ERRCODE_T_R_SERIALIZATION_FAILURE,
        "the worker ID of this server changed during the call".into(),
        "The mark was not changed.".into(),
        "Call the function again.".into(),
    )
}

/// Returns the error of a server whose grant begins so far ahead of its clock that the clock must be wrong.
pub fn grant_ahead(start: i128, clock: i128) -> Sentences {
    (
        PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        "the first ID of the grant is more than a day ahead of the clock".into(),
        format!(
            "The grant contains IDs from {}, but the clock of this server shows {}.",
            timestamp::utc(start),
            timestamp::utc(clock)
        ),
        "Correct the clock of this server. Other servers can have issued the IDs before the grant.".into(),
    )
}

/// Returns the error of a server of which there is a copy that has its worker ID.
pub fn fenced(name: &str, host: &str, by: &str, seen: i128) -> Sentences {
    (
        PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("a copy of this server uses {name}"),
        format!(
            "The copy has {by}, and last renewed the grant at {}. This server runs on host \"{host}\" and issues no more IDs.",
            timestamp::utc(seen)
        ),
        "Find out which of the two servers is the right one, and stop the other. This server gets another worker ID when it is \
         restarted."
            .into(),
    )
}

/// Says since when heartbeats fail, and why.
pub fn heartbeats(outage: &Outage) -> String {
    let succeeded = match outage.succeeded {
        Some(at) => format!("The last successful heartbeat was at {}.", timestamp::utc(at)),
        None => "No heartbeat has succeeded since this server started.".into(),
    };
    let times = match outage.failures {
        1 => "1 heartbeat has".into(),
        failures => format!("{failures} heartbeats have"),
    };
    match outage.cause.trim_end_matches('.') {
        _ if outage.overdue => {
            format!("{succeeded} Background worker \"snowflake_pg registrar\" does not send heartbeats.")
        }
        "" => succeeded,
        cause => format!("{succeeded} Since then, {times} failed. The last error is: {cause}."),
    }
}

fn what_to_do(outage: &Outage) -> Option<String> {
    match outage.hint.as_str() {
        _ if outage.overdue => Some(
            "Check that the background worker runs: increase \"max_worker_processes\" if all slots are in use, and look for errors in \
             the server log."
                .into(),
        ),
        "" => None,
        hint => Some(hint.into()),
    }
}
