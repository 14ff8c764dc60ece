//! A server of a fleet without PostgreSQL: the protocol over a connection for each heartbeat, as the registrar uses it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cluster::texts;
use flake::IdFormat;
use flake::fleet::{Effect, Member, MemberIdentity, Point, Scale};
use postgres::{Config, NoTls};

/// What a server says about itself. The texts are as long as usual.
const ABOUT: &str = r#"{"host": "db1.example", "port": 5432, "data_directory": "/var/lib/postgresql/15/main", "role": "primary",
    "system_identifier": "7437645385938409481", "server_version": "15.20", "extension_version": "0.2.0",
    "clock_offset_us": 120, "round_trip_us": 900}"#;

/// A server of a fleet.
pub struct FleetServer {
    member: Member,
    scale: Scale,
    lease: Duration,
}

impl FleetServer {
    /// Returns a server that has no worker ID yet.
    pub fn new(format: IdFormat, lease: Duration) -> FleetServer {
        let identity = MemberIdentity { fleet: None, format, datacenter: 0 };
        FleetServer { member: Member::start(identity, None, Point::ZERO), scale: Scale::new(format), lease }
    }

    /// Claims a worker ID or renews the grant, over a connection of its own. Panics if the registry refuses.
    pub fn heartbeat(&mut self, registry: &Config) {
        let mut client = registry.connect(NoTls).unwrap_or_else(|e| panic!("cannot connect to the registry: {e}"));
        loop {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970").as_micros() as i64;
            let call = self.member.request(self.scale.point(now), self.lease).expect("the server is not fenced");
            let statement = call.statement(ABOUT);
            // Without a prepared statement, as in the registrar, so that a request takes one round trip.
            let row = client
                .query_typed_one(&statement.sql, &texts(&statement.parameters))
                .unwrap_or_else(|e| panic!("{call:?}: {e}"));
            let answer = call.answer(|column| row.get(column)).unwrap_or_else(|| panic!("{row:?}"));
            match self.member.answer(&call, &answer) {
                Effect::Continue => {}
                Effect::Assigned | Effect::Renewed => return,
                other => panic!("{answer:?}: {other:?}"),
            }
        }
    }
}
