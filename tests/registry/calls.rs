//! A server with a registry, and the calls that servers of the fleet send to it.

use std::time::Duration;

use cluster::{Answer as _, Client, Cluster, texts, typed};
use flake::IdFormat;
use flake::fleet::{
    Call, Effect, Member, MemberIdentity, MemberStanding, Point, RegistryAnswer, RegistryRefusal, RegistryRequest,
    Scale, Uuid,
};

/// The layout of most registries.
pub const LAYOUT: &str = "41:10:12";

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

/// Returns a server that has just been started, without a witness.
pub fn member(layout: &str) -> Member {
    Member::start(MemberIdentity { fleet: None, format: format(layout), datacenter: 0 }, None, Point::ZERO)
}

/// Runs one heartbeat of a server, whose calls this function sends, and returns its effect.
pub fn beat(
    client: &mut Client,
    member: &mut Member,
    layout: &str,
    send: impl Fn(&mut Client, &Call) -> RegistryAnswer,
) -> Effect {
    loop {
        let now: i64 = client.one(&format!("SELECT {}", micros("clock_timestamp()")));
        let now = Scale::new(format(layout)).point(now);
        let call = member.request(now, Duration::from_hours(12)).expect("the server is not fenced");
        let answer = send(client, &call);
        match member.answer(&call, &answer) {
            Effect::Continue => {}
            effect => return effect,
        }
    }
}

/// Returns the worker ID that `client` claims for a new server, or the reason why the registry refuses it.
pub fn claim(client: &mut Client, layout: &str) -> Result<u32, RegistryRefusal> {
    let mut member = member(layout);
    let effect = beat(client, &mut member, layout, |client, call| send(client, call).expect("the registry answers").0);
    match (effect, member.standing()) {
        (Effect::Assigned, MemberStanding::Holding(grant)) => Ok(grant.node.worker),
        (Effect::Refused(refusal), _) => Err(refusal),
        other => panic!("{other:?}"),
    }
}

/// Checks that a new server gets no worker ID because of a quarantine.
pub fn check_quarantine(client: &mut Client, layout: &str) -> Result<(), String> {
    match claim(client, layout) {
        Ok(worker) => Err(format!("worker ID {worker} was assigned")),
        Err(RegistryRefusal::Quarantine { .. }) => Ok(()),
        Err(other) => Err(format!("{other:?}")),
    }
}

/// Replaces a part of the definition of a function of the registry.
pub fn spoil(client: &mut Client, function: &str, right: &str, wrong: &str) {
    let definition: String = client.one(&format!(
        "SELECT pg_get_functiondef(oid) FROM pg_proc
         WHERE proname = '{function}' AND pronamespace = 'snowflake_registry'::regnamespace"
    ));
    let spoiled = definition.replace(right, wrong);
    assert_ne!(spoiled, definition);
    client.batch_execute(&spoiled).expect("a superuser may");
}

/// The clocks of the comparisons with the model begin at this time. The tests must not depend on the time at which they run.
pub const BEGIN: &str = "2026-03-01 12:00:00";

/// Sets the clock of a registry to so many seconds after [`BEGIN`], where it stands still.
pub fn stop_clock_at(server: &Cluster, client: &mut Client, seconds: i64) {
    let at = format!("SELECT to_char(timestamp '{BEGIN}' + {seconds} * interval '1 s', 'YYYY-MM-DD HH24:MI:SS')");
    server.set_clock(&client.one::<String>(&at));
}

/// Restores a dump in a database.
pub fn restore(server: &Cluster, database: &str, dump: &str) {
    let mut psql = server.psql();
    psql.args(["-d", database]);
    typed(psql, dump).expect("the dump is restored");
}
