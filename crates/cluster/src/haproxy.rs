//! HAProxy in front of a Patroni cluster, with the configuration that docs/sharding.md shows.

use std::time::Duration;

use postgres::{Client, Config, NoTls};

use crate::patience::PATIENCE;
use crate::{Host, Patroni, Scratch, Service, block_with, blocks, found_within, loopback, page};

/// The page with the configuration.
const PAGE: &str = "docs/sharding.md";

/// The check interval on the page, and the one that is used instead.
const INTERVAL: (&str, &str) = ("inter 3s", "inter 300ms");

/// The port that leads to the primary.
const PRIMARY: u16 = 5000;

/// A running HAProxy. It ends when this value is dropped.
pub struct HaProxy {
    /// The address on which HAProxy listens.
    pub address: String,
    service: Service,
    /// The directory of the configuration and the log. It is removed last.
    _directory: Scratch,
}

impl HaProxy {
    /// Starts HAProxy in front of the members of a cluster. `change` changes the configuration of the page. `name` is a name that no
    /// other test uses.
    pub fn start(name: &str, patroni: &Patroni, change: impl FnOnce(String) -> String) -> HaProxy {
        let directory = Scratch::new(&format!("{name}.haproxy"));
        let address = loopback(0);
        let text = block_with(blocks(&page(PAGE), "text haproxy"), INTERVAL.0);
        let text = text.replace(INTERVAL.0, INTERVAL.1).replace("10.0.0.5", &address);
        let file = directory.0.join("haproxy.cfg");
        Host::get().write(&file, &change(patroni.here(&patroni.members[0], &text)));
        let mut command = Host::get().debian_program("haproxy").expect("`scripts/setup engines` provides haproxy");
        command.arg("-db").arg("-f").arg(&file);
        let service = Service::start(command, &directory.0.join("log"));
        HaProxy { address, service, _directory: directory }
    }

    /// Returns the parameters of a connection through this port.
    pub fn config(&self, port: u16) -> Config {
        let mut config = Config::new();
        config.host(&self.address).port(port).user("postgres").password("postgres-secret").dbname("postgres");
        config.connect_timeout(Duration::from_secs(2));
        config
    }

    /// Connects to this member, as soon as HAProxy takes it for the primary and it issues IDs.
    pub fn connect(&self, patroni: &Patroni, leader: usize) -> Client {
        let address = &patroni.members[leader].address;
        let found = found_within(PATIENCE, || {
            let mut client = self.config(PRIMARY).connect(NoTls);
            let issues = client.as_mut().is_ok_and(|client| issues(client, address));
            client.ok().filter(|_| issues)
        });
        found.unwrap_or_else(|| panic!("no way to the primary:\n{}\n{}", self.log(), patroni.log()))
    }

    /// Returns what HAProxy has written.
    pub fn log(&self) -> String {
        self.service.log()
    }
}

/// Returns true if a connection leads to the server with this address, and the server issues IDs.
fn issues(client: &mut Client, address: &str) -> bool {
    let row = client.query_one("SELECT host(inet_server_addr()), snowflake_nextval()", &[]);
    row.is_ok_and(|row| row.get::<_, String>(0) == address)
}
