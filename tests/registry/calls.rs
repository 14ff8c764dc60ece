//! A server with a registry, and the calls that servers of the fleet send to it.

use std::time::Duration;

use cluster::{Answer as _, Client, Cluster, texts};
use flake::fleet::{Call, Point, RegistryAnswer, RegistryRequest, Scale, Uuid};
use flake::{IdFormat, Node};

/// Starts a server without the library, and creates the registry of a fleet in its database `postgres`.
pub fn registry(name: &str, layout: &str) -> Cluster {
    Cluster::builder(name).start_registry(layout)
}

/// Returns a layout with Twitter's epoch.
pub fn format(layout: &str) -> IdFormat {
    IdFormat::parse(layout).expect("a layout")
}

/// Returns the statement that asks for a nonce. Its row has the columns of [`flake::fleet::Statement`].
pub fn hello(layout: &str) -> String {
    let format = format(layout);
    let mut sql = Call { fleet: None, format, request: RegistryRequest::Hello { serial: 1 } }.statement("{}").sql;
    for (n, value) in [(1, "NULL"), (2, &format!("'{}'", format.layout)), (3, &format.epoch.unix_ms().to_string())] {
        sql = sql.replace(&format!("${n}"), value);
    }
    sql
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
pub fn send(client: &mut Client, call: &Call) -> Result<(RegistryAnswer, i64), postgres::Error> {
    let statement = call.statement(r#"{"host": "db1", "port": 5432}"#);
    let row = client.query_typed_one(&statement.sql, &texts(&statement.parameters))?;
    let answer = call.answer(|column| row.get(column)).unwrap_or_else(|| panic!("not an answer: {row:?}"));
    Ok((answer, flake::fleet::micros(row.get("now")).expect("a time")))
}

/// Returns the worker ID that `client` claims for a new server, or the other answer.
pub fn claim(client: &mut Client, layout: &str) -> Result<Node, RegistryAnswer> {
    use flake::fleet::{Effect, Member, MemberIdentity, MemberStanding};
    let format = format(layout);
    let scale = Scale::new(format);
    let mut member = Member::start(MemberIdentity { fleet: None, format, datacenter: 0 }, None, Point::ZERO);
    loop {
        let now: i64 = client.one(&format!("SELECT {}", micros("clock_timestamp()")));
        let call = member.request(scale.point(now), Duration::from_hours(12)).expect("the server is not fenced");
        let (answer, _) = send(client, &call).expect("the registry answers");
        match (member.answer(&call, &answer), member.standing()) {
            (Effect::Continue, _) => {}
            (Effect::Assigned, MemberStanding::Holding(grant)) => return Ok(grant.node),
            _ => return Err(answer),
        }
    }
}
