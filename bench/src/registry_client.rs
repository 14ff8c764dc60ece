//! A server of a fleet without PostgreSQL: the protocol over a connection for each heartbeat, as the registrar uses it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use flake::IdFormat;
use flake::fleet::{Answer, Call, Claim, Effect, Identity, Member, Point, Renew, Request, Scale, Uuid};
use postgres::{Config, NoTls, SimpleQueryMessage, SimpleQueryRow};

/// What a server says about itself. The texts are as long as usual.
const ABOUT: &str = r#"{"host": "db1.example", "port": 5432, "data_directory": "/var/lib/postgresql/15/main", "role": "primary",
    "system_identifier": "7437645385938409481", "server_version": "15.20", "extension_version": "0.2.0",
    "clock_offset_us": 120, "round_trip_us": 900}"#;

/// A server of a fleet.
pub struct Server {
    member: Member,
    scale: Scale,
    lease: Duration,
}

impl Server {
    /// Returns a server that has no worker ID yet.
    pub fn new(format: IdFormat, lease: Duration) -> Server {
        let identity = Identity { fleet: None, format, datacenter: 0 };
        Server { member: Member::start(identity, None, Point::ZERO), scale: Scale::new(format), lease }
    }

    /// Claims a worker ID or renews the grant, over a connection of its own. Panics if the registry refuses.
    pub fn heartbeat(&mut self, registry: &Config) {
        let mut client = registry.connect(NoTls).unwrap_or_else(|e| panic!("cannot connect to the registry: {e}"));
        loop {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970").as_micros() as i64;
            let call = self.member.request(self.scale.point(now), self.lease).expect("the server is not fenced");
            // A simple query takes one round trip, as the registrar's requests do.
            let messages = client.simple_query(&statement(&call)).unwrap_or_else(|e| panic!("{call:?}: {e}"));
            let row = messages.into_iter().find_map(|message| match message {
                SimpleQueryMessage::Row(row) => Some(row),
                _ => None,
            });
            let answer = answer(&row.expect("every function returns a row"));
            match self.member.answer(&call, &answer) {
                Effect::Continue => {}
                Effect::Assigned | Effect::Renewed => return,
                other => panic!("{answer:?}: {other:?}"),
            }
        }
    }
}

fn statement(call: &Call) -> String {
    let uuid = |Uuid(uuid): Uuid| format!("'{uuid:032x}'");
    let fleet = call.fleet.map_or("NULL".into(), uuid);
    let common = format!("{fleet}, '{}', {}", call.format.layout, call.format.epoch.unix_ms());
    let lease = |lease: Duration| format!("'{} us'", lease.as_micros());
    let function = match call.request {
        Request::Hello { .. } => format!("hello({common})"),
        Request::Claim(Claim { datacenter, holder, life, nonce, clock, lease: wanted }) => format!(
            "claim({common}, {datacenter}, {}, {life}, {}, {}, {}, '{ABOUT}')",
            uuid(holder),
            uuid(nonce),
            clock.id(),
            lease(wanted)
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
            "renew({common}, {datacenter}, {worker}, {}, {count}, {life}, {}, {}, {}, {}, {}, {}, '{ABOUT}')",
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
        "SELECT answer, reason, worker, fleet, life, nonce, count, start, bound, EXTRACT(epoch FROM until) AS until, \
         EXTRACT(epoch FROM now) AS now, other FROM snowflake_registry.{function}"
    )
}

/// Returns an answer in a healthy fleet. Panics if it is another one.
fn answer(row: &SimpleQueryRow) -> Answer {
    let text = |column: &str| row.get(column).unwrap_or_else(|| panic!("no {column} in {row:?}"));
    let number = |column: &str| text(column).parse::<u64>().expect("a number");
    let point = |column: &str| Point::new(number(column) as i64).expect("points are not negative");
    let uuid = |column: &str| Uuid(u128::from_str_radix(&text(column).replace('-', ""), 16).expect("a UUID"));
    match text("answer") {
        "hello" => Answer::Hello { fleet: uuid("fleet"), life: number("life"), nonce: uuid("nonce") },
        "claimed" => Answer::Claimed {
            worker: number("worker") as u32,
            nonce: uuid("nonce"),
            count: number("count"),
            life: number("life"),
            start: point("start"),
            bound: point("bound"),
        },
        "renewed" => Answer::Renewed {
            nonce: uuid("nonce"),
            count: number("count"),
            life: number("life"),
            bound: point("bound"),
        },
        _ => panic!("{row:?}"),
    }
}
