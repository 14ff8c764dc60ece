//! What the registrar logs. Each line says what happened once, and not at every heartbeat.

use std::time::Duration;

use flake::fleet::{Loss, Ring, SPARE_LEASE};
use pgrx::PgLogLevel;

use crate::config::{guc, identity};
use crate::fleet::call::Clocks;
use crate::fleet::grant::{Snapshot, Standing, now};
use crate::message::error::Error;
use crate::message::fleet;
use crate::message::trouble::Trouble;
use crate::message::wording::Report;
use crate::pg::timestamp;
use crate::server::log;

/// How much of the lease is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Left {
    /// More than half.
    #[default]
    Enough,
    /// Less than half.
    Half,
    /// Less than a quarter.
    Quarter,
    /// Nothing.
    Nothing,
}

/// Logs that this server has a worker ID, from the registry or from the witness.
pub fn holding(snapshot: &Snapshot, from_witness: bool) {
    let name = name(snapshot);
    let message = match from_witness {
        true => format!("continuing with {name} from the witness"),
        false => format!("the registry assigned {name}"),
    };
    log::log(message, until(snapshot));
}

/// Logs why a heartbeat has failed, and what this means for the server.
pub fn failed(trouble: &Trouble, snapshot: &Snapshot) {
    let Report { code, message, detail, hint } = trouble.report();
    let message = format!("heartbeat failed: {message}");
    let detail = format!("{detail} {}", until(snapshot));
    log::tell(PgLogLevel::WARNING, Report { code, message, detail: detail.trim().into(), hint });
}

/// Logs that a heartbeat has succeeded after others have failed.
pub fn recovered(failures: u64, snapshot: &Snapshot) {
    let times = if failures == 1 { "1 failed heartbeat".into() } else { format!("{failures} failed heartbeats") };
    log::log(format!("a heartbeat succeeded after {times}"), until(snapshot));
}

/// Logs that the lease runs out, because no heartbeat succeeds or because the clock of the registry is behind.
pub fn running_out(left: Left, snapshot: &Snapshot) {
    let part = match left {
        Left::Enough => return,
        Left::Half => "less than half of the lease is left",
        Left::Quarter => "less than a quarter of the lease is left",
        Left::Nothing => "the lease has ended",
    };
    match snapshot.failures {
        0 => log::warn_of(
            format!("{part}, because the clock of the registry is behind"),
            format!("{} {}", clocks_of(snapshot.offset_us), until(snapshot)),
            "Set the clock of the registry's server. The registry grants no IDs that are more than one lease ahead of its own clock.",
        ),
        _ => log::warn_of(
            format!("{part}, because heartbeats fail"),
            format!("{} {}", fleet::heartbeats(&snapshot.outage()), until(snapshot)),
            &snapshot.hint,
        ),
    }
}

/// Logs that this server has lost its worker ID.
pub fn lost(loss: Loss, snapshot: &Snapshot) {
    let detail = match loss {
        Loss::Expired => {
            format!(
                "The grant ended at {}, before the server could renew it.",
                timestamp::utc(snapshot.granted_until.into())
            )
        }
        Loss::GivenAway => "The registry has given the worker ID to another server.".into(),
    };
    log::warn_of(
        format!("lost {}", name(snapshot)),
        format!("{detail} The server asks for another worker ID."),
        "If this happens again, increase \"snowflake_pg.lease\", and check the clocks of this server and of the registry.",
    );
}

/// Logs that a copy of this server has its worker ID.
pub fn fenced(snapshot: &Snapshot, seen: i128) {
    let error = Error::Fenced { name: name(snapshot), host: host(), by: snapshot.fenced_by.clone(), seen };
    log::tell(PgLogLevel::WARNING, error.report());
}

/// Logs that the clocks of this server and of the registry differ.
pub fn skewed(clocks: Clocks, limit: Duration) {
    let seconds = |micros: i64| micros as f64 / 1e6;
    let side = match clocks.offset > 0 {
        true => "s ahead of the clock of the registry",
        false => "s behind the clock of the registry",
    };
    log::warn_of(
        format!("the clock is {:.3} {side}", seconds(clocks.offset).abs()),
        format!(
            "{} This is more than \"snowflake_pg.max_clock_skew\", which is {:.3} s. The measurement is accurate to {:.3} s.",
            clocks_of(clocks.offset),
            limit.as_secs_f64(),
            seconds(clocks.round_trip) / 2.0
        ),
        "Synchronize the clocks of the servers, for example with chrony. IDs are still unique, but IDs from different servers are \
         not in chronological order.",
    );
}

fn name(snapshot: &Snapshot) -> String {
    identity::get().name(snapshot.node)
}

/// Says until when this server can issue IDs.
fn until(snapshot: &Snapshot) -> String {
    match snapshot.standing {
        Standing::Holding => format!(
            "The server can issue IDs with {} until {}.",
            name(snapshot),
            timestamp::utc(snapshot.granted_until.into())
        ),
        Standing::Seeking => "The server has no worker ID and issues no IDs.".into(),
        Standing::Fenced => String::new(),
    }
}

/// Says what the clocks of this server and of the registry show, if this server's is ahead by this number of microseconds.
fn clocks_of(offset: i64) -> String {
    let now = now();
    let registry = timestamp::utc(now.saturating_sub(offset).into());
    format!(
        "The clock of this server shows {}, and the clock of the registry shows {registry}.",
        timestamp::utc(now.into())
    )
}

/// Returns the name of this machine.
pub fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Returns how much of the lease is left at `now`, in microseconds since the Unix epoch.
pub fn left(snapshot: &Snapshot, now: i64) -> Left {
    let identity = identity::get();
    let spare = snapshot.node.worker >= Ring::of(&identity.format.layout).spare;
    let lease = if spare { guc::lease().min(SPARE_LEASE) } else { guc::lease() };
    let lease = lease.as_micros() as i64;
    match snapshot.granted_until.saturating_sub(now) {
        ..=0 => Left::Nothing,
        left if left < lease / 4 => Left::Quarter,
        left if left < lease / 2 => Left::Half,
        _ => Left::Enough,
    }
}
