//! Sends the protocol's calls to the registry. [`flake::fleet::Statement`] defines the statements.

use std::ffi::CString;
use std::time::Duration;

use flake::fleet::{Call, RegistryAnswer, micros};
use serde_json::Value;

use crate::fleet::grant;
use crate::message::registry::{RefusalFacts, Trouble};
use crate::pg::libpq::{Connection, QueryFailure, ResultRow};
use crate::server::clock;

/// How long the registry has to answer one request. The registry waits up to five seconds for each of two locks, and
/// then for its synchronous standby.
const PATIENCE: Duration = Duration::from_secs(15);

/// How many times a request is repeated immediately if the registry changes during the request.
const RETRIES: u32 = 3;

/// An answer with additional information.
pub struct Reply {
    pub answer: RegistryAnswer,
    /// What a refusal reports in addition to its reason.
    pub facts: RefusalFacts,
    /// The holder of the worker ID: its host, port and data directory.
    pub holder: String,
    pub clocks: Clocks,
}

/// A comparison of this server's wall clock with the registry's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clocks {
    /// How far this server's clock is ahead, in microseconds, assuming that the registry read its clock in the middle
    /// of the request.
    pub offset: i64,
    /// The duration of the request, in microseconds. The error of the offset is at most half of this duration.
    pub round_trip: i64,
}

/// Sends a call and waits for its answer. `about` is this server's report about itself, as a JSON object.
pub fn send(connection: &Connection, call: &Call, about: &str) -> Result<Reply, Trouble> {
    let statement = call.statement(about);
    let sql = CString::new(statement.sql).unwrap_or_default();
    let mut retries = 0;
    loop {
        let (wall, begun) = (grant::now(), clock::monotonic());
        let answered = connection.row(&sql, &statement.parameters, PATIENCE);
        let round_trip = (clock::monotonic().saturating_sub(begun) / 1_000).max(1) as i64;
        match answered {
            Ok(row) => return reply(&row, call, wall, round_trip).ok_or_else(|| strange(&row)),
            Err(QueryFailure::Raised { code, .. }) if code == "40001" && retries < RETRIES => retries += 1,
            Err(failure) => return Err(Trouble::NoAnswer(failure)),
        }
    }
}

/// Returns the reply in a row, or `None` if this version does not recognize it.
fn reply(row: &ResultRow, call: &Call, wall: i64, round_trip: i64) -> Option<Reply> {
    let other: Value = row.get("other").and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let said = |key: &str| match &other[key] {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => String::new(),
    };
    let until = row.get("until").and_then(micros);
    let now = micros(row.get("now")?)?;
    let answer = call.answer(|column| row.get(column))?;
    let facts = RefusalFacts {
        until: until.map(i128::from),
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

fn strange(row: &ResultRow) -> Trouble {
    let text = |column| row.get(column).map_or("null".into(), |text| text.chars().take(100).collect::<String>());
    Trouble::Strange { answer: format!("{}, {}", text("answer"), text("reason")) }
}
