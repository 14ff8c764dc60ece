//! A server in a fleet: the errors of its sessions, and its log messages about its worker ID, its grant and its clock.
//! [`crate::message::registry`] contains the reasons why a heartbeat fails.

use std::time::Duration;

use flake::fleet::Loss;
use pgrx::PgSqlErrorCode;

use crate::message::pages;
use crate::message::registry::Trouble;
use crate::message::report::{Report, log, number_of, warn_of};
use crate::pg::timestamp;

/// Why a server that uses a registry does not issue IDs. `name` is the worker ID and the datacenter ID as text. Times
/// are in microseconds since the Unix epoch, and `clock` is the time of this server's clock.
#[derive(Clone, Debug)]
pub enum FleetProblem {
    /// The registry has not assigned a worker ID to this server, or the server has lost it.
    NoWorkerId { outage: Box<Outage> },
    /// The next ID is above the bound of the grant, because heartbeats fail or because the clock is wrong. `until` is
    /// the time of the bound.
    GrantEnded { name: String, until: i128, clock: i128, outage: Box<Outage> },
    /// The IDs in the grant, which begin at `start`, are so far ahead of the clock that the clock must be wrong.
    GrantAhead { start: i128, clock: i128 },
    /// A copy of this server, which runs on this host, has renewed the grant. `by` is the copy's host, port and data
    /// directory as text, and `seen` is when the copy last renewed the grant.
    Fenced { name: String, host: String, by: String, seen: i128 },
    /// The registry assigned a different worker ID while a function was checking IDs.
    WorkerIdChanged,
}

/// The results of this server's last heartbeats.
#[derive(Clone, Debug, Default)]
pub struct Outage {
    /// When a heartbeat last succeeded, or `None` if no heartbeat has succeeded since this server started.
    pub succeeded: Option<i128>,
    /// How many heartbeats have failed since then.
    pub failures: u64,
    /// Why the last heartbeat failed, or an empty string.
    pub cause: String,
    /// How to resolve the cause, or an empty string.
    pub hint: String,
    /// True if the registrar's next heartbeat is long overdue.
    pub overdue: bool,
}

impl FleetProblem {
    pub fn report(&self) -> Report {
        match self {
            FleetProblem::NoWorkerId { outage } => Report::of(
                PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "the registry has not assigned a worker ID to this server",
                heartbeats(outage),
                format!(
                    "{} The server issues IDs as soon as it has a worker ID.",
                    what_to_do(outage).unwrap_or("Retry in a few seconds.")
                ),
            ),
            FleetProblem::GrantEnded { name, until, clock, outage } => Report::of(
                PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("the grant for {name} has ended"),
                format!(
                    "The grant covers IDs with timestamps up to {}, and this server's clock shows {}. {}",
                    timestamp::utc(*until),
                    timestamp::utc(*clock),
                    heartbeats(outage)
                ),
                match what_to_do(outage) {
                    None => {
                        "Check the clocks of this server and of the registry, and the high-water mark in view \"snowflake_status\"."
                            .into()
                    }
                    Some(hint) => format!("{hint} The server resumes issuing IDs as soon as a heartbeat succeeds."),
                },
            ),
            FleetProblem::GrantAhead { start, clock } => Report::of(
                PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "the first ID of the grant is more than a day ahead of the clock",
                format!(
                    "The grant begins at {}, but this server's clock shows {}.",
                    timestamp::utc(*start),
                    timestamp::utc(*clock)
                ),
                "Correct this server's clock. Other servers might have issued the IDs directly below those of the grant.",
            ),
            FleetProblem::Fenced { name, host, by, seen } => Report::of(
                PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("a copy of this server uses {name}"),
                format!(
                    "The copy has {by}, and last renewed the grant at {}. This server runs on host \"{host}\" and issues no more IDs.",
                    timestamp::utc(*seen)
                ),
                "Find out which of the two servers is the right one, and stop the other one. This server gets a \
                 different worker ID when it is restarted.",
            ),
            FleetProblem::WorkerIdChanged => Report::of(
                PgSqlErrorCode::ERRCODE_T_R_SERIALIZATION_FAILURE,
                "the worker ID of this server changed during the call",
                "The mark was not changed.",
                "Call the function again.",
            ),
        }
    }
}

/// Returns sentences that report when heartbeats began to fail and why they fail.
fn heartbeats(outage: &Outage) -> String {
    let succeeded = match outage.succeeded {
        Some(at) => format!("The last successful heartbeat was at {}.", timestamp::utc(at)),
        None => "No heartbeat has succeeded since this server started.".into(),
    };
    let times = number_of(outage.failures, "heartbeat has", "heartbeats have");
    match outage.cause.trim_end_matches('.') {
        _ if outage.overdue => {
            format!("{succeeded} Background worker \"snowflake_pg registrar\" is not sending heartbeats.")
        }
        "" => succeeded,
        cause => format!("{succeeded} Since then, {times} failed. The last error was: {cause}."),
    }
}

/// Returns a hint, if one is known.
fn what_to_do(outage: &Outage) -> Option<&str> {
    match outage.hint.as_str() {
        _ if outage.overdue => Some(
            "Check that the background worker is running: increase \"max_worker_processes\" if all slots are in use, \
             and look for errors in the server log.",
        ),
        "" => None,
        hint => Some(hint),
    }
}

/// How much of the lease remains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeaseLeft {
    /// More than half.
    #[default]
    Enough,
    /// Less than half.
    Half,
    /// Less than a quarter.
    Quarter,
    Nothing,
}

/// How long this server can issue IDs.
pub enum Until {
    /// Until this time, in microseconds since the Unix epoch, with this worker ID and datacenter ID.
    Time(i128, String),
    NoWorkerId,
    Fenced,
}

impl Until {
    fn sentence(&self) -> String {
        match self {
            Until::Time(time, name) => format!("The server can issue IDs with {name} until {}.", timestamp::utc(*time)),
            Until::NoWorkerId => "The server has no worker ID and cannot issue IDs.".into(),
            Until::Fenced => String::new(),
        }
    }
}

/// Logs that this server has a worker ID, either from the registry or from the witness.
pub fn holding(name: &str, until: &Until, from_witness: bool) {
    let message = match from_witness {
        true => format!("continuing with {name} from the witness"),
        false => format!("the registry assigned {name}"),
    };
    log(message, until.sentence());
}

/// Logs why a heartbeat has failed, and how this affects the server.
pub fn failed(trouble: &Trouble, until: &Until) {
    let mut report = trouble.report();
    report.detail = format!("{} {}", report.detail, until.sentence()).trim().into();
    report.warn("heartbeat failed: ");
}

/// Logs that a heartbeat has succeeded after earlier ones failed.
pub fn recovered(failures: u64, until: &Until) {
    let times = number_of(failures, "failed heartbeat", "failed heartbeats");
    log(format!("a heartbeat succeeded after {times}"), until.sentence());
}

/// Logs that the lease is running out, because no heartbeat succeeds or because the registry's clock is behind. `now`
/// is the time of this server's clock, and `offset` is how far it is ahead of the registry's clock, both in
/// microseconds.
pub fn running_out(left: LeaseLeft, until: &Until, outage: &Outage, now: i64, offset: i64) {
    let part = match left {
        LeaseLeft::Enough => return,
        LeaseLeft::Half => "less than half of the lease is left",
        LeaseLeft::Quarter => "less than a quarter of the lease is left",
        LeaseLeft::Nothing => "the lease has ended",
    };
    match outage.failures {
        0 => warn_of(
            format!("{part}, because the registry's clock is behind"),
            format!("{} {}", clocks(now, offset), until.sentence()),
            "Correct the clock of the registry's server. The registry does not grant IDs that are more than one lease \
             ahead of its own clock.",
        ),
        _ => warn_of(
            format!("{part}, because heartbeats are failing"),
            format!("{} {}", heartbeats(outage), until.sentence()),
            &outage.hint,
        ),
    }
}

/// Logs that this server has lost its worker ID. The grant ended at `until`, in microseconds since the Unix epoch.
pub fn lost(name: &str, loss: Loss, until: i128) {
    let detail = match loss {
        Loss::Expired => {
            format!("The grant ended at {}, before the server could renew it.", timestamp::utc(until))
        }
        Loss::GivenAway => "The registry has assigned the worker ID to another server.".into(),
    };
    warn_of(
        format!("lost {name}"),
        format!("{detail} The server is requesting a different worker ID."),
        "If this happens again, increase \"snowflake_pg.lease\", and check the clocks of this server and of the registry.",
    );
}

/// Logs that the clocks of this server and the registry differ by more than the limit. `now` is the time of this
/// server's clock, `offset` is how far it is ahead, and `round_trip` is how long the measurement took, all in
/// microseconds.
pub fn skewed(now: i64, offset: i64, round_trip: i64, limit: Duration) {
    let seconds = |micros: i64| micros as f64 / 1e6;
    let side = match offset > 0 {
        true => "s ahead of the registry's clock",
        false => "s behind the registry's clock",
    };
    warn_of(
        format!("the clock is {:.3} {side}", seconds(offset).abs()),
        format!(
            "{} This is more than \"snowflake_pg.max_clock_skew\", which is {:.3} s. The measurement is accurate to \
             within {:.3} s.",
            clocks(now, offset),
            limit.as_secs_f64(),
            seconds(round_trip) / 2.0
        ),
        "Synchronize the clocks of the servers, for example with chrony. IDs are still unique, but IDs from different servers are \
         not in chronological order.",
    );
}

/// Returns a sentence that reports the times of this server's and the registry's clocks.
fn clocks(now: i64, offset: i64) -> String {
    let registry = timestamp::utc(now.saturating_sub(offset).into());
    format!("This server's clock shows {}, and the registry's clock shows {registry}.", timestamp::utc(now.into()))
}

/// Warns that no background worker slot is available for the registrar.
pub fn no_registrar() {
    warn_of(
        "no free slot for background worker \"snowflake_pg registrar\"",
        "The background worker gets this server's worker ID from the registry. All slots allowed by \
         \"max_worker_processes\" are in use by other background workers.",
        "Increase \"max_worker_processes\" by 1 or more and restart the server.",
    );
}

/// Warns that a registry was added to the configuration of a server that was started without one.
pub fn registry_given() {
    warn_of(
        "parameter \"snowflake_pg.registry\" was set, but takes effect only after a restart",
        "The server was started without a registry.",
        format!(
            "Restart the server. If it has a worker ID in its configuration, first see {}.",
            pages::FLEET.section("Change from configured worker IDs to a registry")
        ),
    );
}
