//! The columns of the view `snowflake_status` that describe the registry.

use pgrx::prelude::*;

use crate::config::identity;
use crate::fleet::grant::{self, Standing};
use crate::pg::timestamp;

/// Returns what this server knows about the registry, for the view `snowflake_status`. This is a separate function
/// because the result columns of an existing C function cannot be changed. If the server does not use a registry, all
/// columns are NULL.
#[pg_extern(volatile, parallel_safe)]
fn snowflake_registry_status() -> TableIterator<
    'static,
    (
        name!(registry_state, Option<&'static str>),
        name!(worker_id_since, Option<TimestampWithTimeZone>),
        name!(granted_until, Option<TimestampWithTimeZone>),
        name!(last_heartbeat, Option<TimestampWithTimeZone>),
        name!(failed_heartbeats, Option<i64>),
        name!(heartbeat_error, Option<String>),
        name!(clock_offset, Option<Interval>),
        name!(fenced_by, Option<String>),
        name!(fenced_at, Option<TimestampWithTimeZone>),
    ),
> {
    let (Some(identity), Some(snapshot)) = (identity::find(), grant::published()) else {
        return TableIterator::once((None, None, None, None, None, None, None, None, None));
    };
    let time = |at: i64| timestamp::timestamptz(at.into()).filter(|_| at != 0);
    let text = |text: String| Some(text).filter(|text| !text.is_empty());
    let (holding, fenced) = (snapshot.standing == Standing::Holding, snapshot.standing == Standing::Fenced);
    let overdue = snapshot.overdue();
    let error = match (overdue, snapshot.detail.trim_end_matches('.')) {
        (true, _) => Some("background worker \"snowflake_pg registrar\" is not sending heartbeats".into()),
        (false, "") => text(snapshot.cause),
        (false, detail) => Some(format!("{}: {detail}", snapshot.cause)),
    };
    let state = match snapshot.standing {
        Standing::Fenced => "fenced",
        Standing::Seeking => "no worker ID",
        Standing::Holding if snapshot.granted_until <= grant::now() => "ended",
        Standing::Holding if snapshot.failures > 0 || overdue => "failing",
        Standing::Holding => "granted",
    };
    let offset = timestamp::interval(snapshot.offset_us.into());
    let seen = grant::scale(identity).time(snapshot.fenced_seen);
    TableIterator::once((
        Some(state),
        time(snapshot.since).filter(|_| holding),
        time(snapshot.granted_until).filter(|_| holding),
        time(snapshot.last_heartbeat),
        Some(snapshot.failures as i64),
        error,
        Some(offset).filter(|_| snapshot.round_trip_us != 0),
        text(snapshot.fenced_by).filter(|_| fenced),
        timestamp::timestamptz(seen).filter(|_| fenced),
    ))
}
