//! The calls of the protocol as SQL statements, and their answers.

use std::ffi::CStr;
use std::time::Duration;

use flake::fleet::{Answer, Call, Claim, Loss, Point, Refusal, Renew, Request, Scale, Uuid};
use jiff::Timestamp;
use serde_json::Value;

use crate::generator::{clock, grant};
use crate::message::trouble::{Facts, Trouble};
use crate::pg::libpq::{Connection, Failure, Row};

/// How long the registry has to answer one request. It waits up to five seconds for each of two locks, and then for its synchronous
/// standby.
const PATIENCE: Duration = Duration::from_secs(15);

/// How often a request is sent again at once because the registry changed at the same time.
const RETRIES: u32 = 3;

/// The statements. A role of the registry can have any search path and any settings for the form of times, so the statements use no
/// operator and no function by an unqualified name, and times come as numbers.
const HELLO: &CStr =
    c"SELECT answer, reason, worker, fleet, life, nonce, count, start, bound, EXTRACT(epoch FROM until) AS until, \
    EXTRACT(epoch FROM now) AS now, other FROM snowflake_registry.hello($1, $2, $3)";
const CLAIM: &CStr =
    c"SELECT answer, reason, worker, fleet, life, nonce, count, start, bound, EXTRACT(epoch FROM until) AS until, \
    EXTRACT(epoch FROM now) AS now, other FROM snowflake_registry.claim($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
const RENEW: &CStr =
    c"SELECT answer, reason, worker, fleet, life, nonce, count, start, bound, EXTRACT(epoch FROM until) AS until, \
    EXTRACT(epoch FROM now) AS now, other \
    FROM snowflake_registry.renew($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)";

/// An answer, and what came with it.
pub struct Reply {
    pub answer: Answer,
    /// What a refusal says beside its reason.
    pub facts: Facts,
    /// Who holds the worker ID: the host, the port and the data directory.
    pub holder: String,
    /// The comparison of the clocks.
    pub clocks: Clocks,
}

/// A comparison of the wall clocks of this server and of the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clocks {
    /// By how much this server's clock is ahead, in microseconds, if the registry read its clock in the middle of the request.
    pub offset: i64,
    /// The duration of the request in microseconds. The offset is wrong by at most half of it.
    pub round_trip: i64,
}

/// Sends a call and waits for its answer. `about` is what this server says about itself, as a JSON object.
pub fn send(connection: &Connection, call: &Call, about: &str) -> Result<Reply, Trouble> {
    let (sql, parameters) = statement(call, about);
    let mut retries = 0;
    loop {
        let (wall, begun) = (grant::now(), clock::monotonic());
        let answered = connection.row(sql, &parameters, PATIENCE);
        let round_trip = (clock::monotonic().saturating_sub(begun) / 1_000).max(1) as i64;
        match answered {
            Ok(row) => return reply(&row, call, wall, round_trip).ok_or_else(|| strange(&row)),
            Err(Failure::Raised { code, .. }) if code == "40001" && retries < RETRIES => retries += 1,
            Err(failure) => return Err(Trouble::NoAnswer(failure)),
        }
    }
}

fn statement(call: &Call, about: &str) -> (&'static CStr, Vec<Option<String>>) {
    let uuid = |Uuid(uuid): Uuid| Some(format!("{uuid:032x}"));
    let number = |number: i64| Some(number.to_string());
    let point = |point: Point| number(point.id());
    let lease = |lease: Duration| Some(format!("{} us", lease.as_micros()));
    let format = call.format;
    let mut all = vec![call.fleet.and_then(uuid), Some(format.layout.to_string()), number(format.epoch.unix_ms())];
    let sql = match call.request {
        Request::Hello { .. } => HELLO,
        Request::Claim(Claim { datacenter, holder, life, nonce, clock, lease: wanted }) => {
            all.extend([number(datacenter.into()), uuid(holder), number(life as i64), uuid(nonce)]);
            all.extend([point(clock), lease(wanted), Some(about.into())]);
            CLAIM
        }
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
        }) => {
            all.extend([number(datacenter.into()), number(worker.into()), uuid(holder), number(count as i64)]);
            all.extend([number(life as i64), uuid(nonce), uuid(next_nonce), point(start), point(bound), point(clock)]);
            all.extend([lease(wanted), Some(about.into())]);
            RENEW
        }
    };
    (sql, all)
}

/// Returns the reply in a row, or `None` if it is not one that this version knows.
fn reply(row: &Row, call: &Call, wall: i64, round_trip: i64) -> Option<Reply> {
    let scale = Scale::new(call.format);
    let other: Value = row.get("other").and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let said = |key: &str| match &other[key] {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => String::new(),
    };
    let until = row.get("until").and_then(micros);
    let now = micros(row.get("now")?)?;
    let answer = answer(row, &scale, until, &said("seen"))?;
    let facts = Facts {
        until: until.map(i128::from),
        below_floor: row.get("reason") == Some("floor"),
        witness: String::new(),
        why: said("why"),
        layout: said("layout"),
        epoch: said("epoch").parse::<i128>().unwrap_or(0).saturating_mul(1_000),
    };
    let holder = match said("host") {
        host if host.is_empty() => "an unknown host".into(),
        host => format!("host \"{host}\", port {}, data directory \"{}\"", said("port"), said("data_directory")),
    };
    let offset = wall.saturating_add(round_trip / 2).saturating_sub(now);
    Some(Reply { answer, facts, holder, clocks: Clocks { offset, round_trip } })
}

fn answer(row: &Row, scale: &Scale, until: Option<i64>, seen: &str) -> Option<Answer> {
    let number = |column: &str| row.get(column)?.parse::<u64>().ok();
    let point = |column: &str| Point::new(row.get(column)?.parse().ok()?);
    let uuid = |column: &str| u128::from_str_radix(&row.get(column)?.replace('-', ""), 16).ok().map(Uuid);
    Some(match (row.get("answer")?, row.get("reason")) {
        ("hello", None) => Answer::Hello { fleet: uuid("fleet")?, life: number("life")?, nonce: uuid("nonce")? },
        ("claimed", None) => Answer::Claimed {
            worker: row.get("worker")?.parse().ok()?,
            nonce: uuid("nonce")?,
            count: number("count")?,
            life: number("life")?,
            start: point("start")?,
            bound: point("bound")?,
        },
        ("renewed", None) => Answer::Renewed {
            nonce: uuid("nonce")?,
            count: number("count")?,
            life: number("life")?,
            bound: point("bound")?,
        },
        ("lost", Some("expired")) => Answer::Lost(Loss::Expired),
        ("lost", Some("given away")) => Answer::Lost(Loss::GivenAway),
        ("conflict", Some("clone")) => {
            let seen = seen.parse::<Timestamp>().map_or(0, Timestamp::as_microsecond);
            Answer::Conflict { seen: scale.point(seen) }
        }
        ("refused", Some(reason)) => Answer::Refused(match reason {
            "foreign fleet" => Refusal::ForeignFleet,
            "layout" => Refusal::Layout,
            "life" => Refusal::Life,
            "quarantine" | "floor" => Refusal::Quarantine { until: scale.point(until.unwrap_or(i64::MAX)) },
            "full" => Refusal::Full,
            "range" => Refusal::Range,
            "lease" => Refusal::Lease,
            _ => return None,
        }),
        _ => return None,
    })
}

/// Converts seconds with a fraction to microseconds. Infinity becomes the greatest number.
fn micros(seconds: &str) -> Option<i64> {
    if seconds.ends_with("nfinity") {
        return Some(i64::MAX);
    }
    let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
    let digits = fraction.chars().chain(std::iter::repeat('0')).take(6).collect::<String>();
    whole.parse::<i64>().ok()?.checked_mul(1_000_000)?.checked_add(digits.parse::<u32>().ok()?.into())
}

fn strange(row: &Row) -> Trouble {
    let text = |column| row.get(column).map_or("null".into(), |text| text.chars().take(100).collect::<String>());
    Trouble::Strange { answer: format!("{}, {}", text("answer"), text("reason")) }
}
