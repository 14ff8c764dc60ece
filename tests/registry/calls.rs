//! A server with a registry, and the calls that servers of the fleet send to it.

use std::time::Duration;

use cluster::{Answer as _, Client, Cluster};
use flake::fleet::{Answer, Call, Loss, Point, Refusal, Renew, Request, Scale, Uuid};
use flake::{IdFormat, Node};
use postgres::Row;

/// Starts a server without the library, and creates the registry of a fleet in its database `postgres`.
pub fn registry(name: &str, layout: &str) -> Cluster {
    Cluster::builder(name).start_registry(layout)
}

/// Returns a layout with Twitter's epoch.
pub fn format(layout: &str) -> IdFormat {
    IdFormat::parse(layout).expect("a layout")
}

/// Returns the SQL statement of a call. Its only row has the columns that [`answer`] reads.
pub fn statement(call: &Call) -> String {
    let uuid = |Uuid(uuid): Uuid| format!("'{uuid:032x}'");
    let fleet = call.fleet.map_or("NULL".into(), uuid);
    let common = format!("{fleet}, '{}', {}", call.format.layout, call.format.epoch.unix_ms());
    let lease = |lease: Duration| format!("'{} us'", lease.as_micros());
    let function = match call.request {
        Request::Hello { .. } => format!("hello({common})"),
        Request::Claim(claim) => format!(
            "claim({common}, {}, {}, {}, {}, {}, {}, '{{\"host\": \"db1\", \"port\": 5432}}')",
            claim.datacenter,
            uuid(claim.holder),
            claim.life,
            uuid(claim.nonce),
            claim.clock.id(),
            lease(claim.lease)
        ),
        Request::Renew(Renew {
            datacenter,
            worker,
            holder,
            count,
            life,
            nonce,
            next_nonce,
            start,
            bound,
            clock,
            lease: wanted,
        }) => format!(
            "renew({common}, {datacenter}, {worker}, {}, {count}, {life}, {}, {}, {}, {}, {}, {}, NULL)",
            uuid(holder),
            uuid(nonce),
            uuid(next_nonce),
            start.id(),
            bound.id(),
            clock.id(),
            lease(wanted)
        ),
    };
    format!(
        "SELECT answer, reason, worker, replace(fleet::text, '-', '') AS fleet, life, replace(nonce::text, '-', '') AS nonce, count, \
         start, bound, {} AS until, {} AS now, {} AS seen FROM snowflake_registry.{function}",
        micros("until"),
        micros("now"),
        micros("(other ->> 'seen')::timestamptz"),
    )
}

/// Returns an expression for a time in microseconds since the Unix epoch.
pub fn micros(time: &str) -> String {
    format!("(extract(epoch FROM {time}) * 1000000)::bigint")
}

/// Returns the UUID in this text of 32 digits.
pub fn uuid(digits: &str) -> Uuid {
    Uuid(u128::from_str_radix(digits, 16).expect("a UUID"))
}

/// Sends a call. Returns the answer, and the time of the registry in microseconds since the Unix epoch.
pub fn send(client: &mut Client, call: &Call) -> Result<(Answer, i64), postgres::Error> {
    let row = client.query_one(&statement(call), &[])?;
    Ok((answer(&row, Scale::new(call.format)), row.get("now")))
}

fn answer(row: &Row, scale: Scale) -> Answer {
    let (kind, reason): (String, Option<String>) = (row.get("answer"), row.get("reason"));
    let number = |column: &str| row.get::<_, i64>(column) as u64;
    let point = |column: &str| Point::new(row.get(column)).expect("points are not negative");
    let nonce = || uuid(row.get("nonce"));
    match (kind.as_str(), reason.as_deref()) {
        ("hello", None) => Answer::Hello { fleet: uuid(row.get("fleet")), life: number("life"), nonce: nonce() },
        ("claimed", None) => Answer::Claimed {
            worker: row.get::<_, i32>("worker") as u32,
            nonce: nonce(),
            count: number("count"),
            life: number("life"),
            start: point("start"),
            bound: point("bound"),
        },
        ("renewed", None) => {
            Answer::Renewed { nonce: nonce(), count: number("count"), life: number("life"), bound: point("bound") }
        }
        ("lost", Some("expired")) => Answer::Lost(Loss::Expired),
        ("lost", Some("given away")) => Answer::Lost(Loss::GivenAway),
        ("conflict", Some("clone")) => Answer::Conflict { seen: scale.point(row.get("seen")) },
        ("refused", Some(reason)) => Answer::Refused(match reason {
            "foreign fleet" => Refusal::ForeignFleet,
            "layout" => Refusal::Layout,
            "life" => Refusal::Life,
            "quarantine" | "floor" => Refusal::Quarantine { until: scale.point(row.get("until")) },
            "full" => Refusal::Full,
            "range" => Refusal::Range,
            "lease" => Refusal::Lease,
            other => panic!("unknown reason {other:?}"),
        }),
        other => panic!("unknown answer {other:?}"),
    }
}

/// Returns the worker ID that `client` claims for a new server, or the other answer.
pub fn claim(client: &mut Client, layout: &str) -> Result<Node, Answer> {
    use flake::fleet::{Effect, Identity, Member, Standing};
    let format = format(layout);
    let scale = Scale::new(format);
    let mut member = Member::start(Identity { fleet: None, format, datacenter: 0 }, None, Point::ZERO);
    loop {
        let now: i64 = client.one(&format!("SELECT {}", micros("clock_timestamp()")));
        let call = member.request(scale.point(now), Duration::from_hours(12)).expect("the server is not fenced");
        let (answer, _) = send(client, &call).expect("the registry answers");
        match (member.answer(&call, &answer), member.standing()) {
            (Effect::Continue, _) => {}
            (Effect::Assigned, Standing::Holding(grant)) => return Ok(grant.node),
            _ => return Err(answer),
        }
    }
}
