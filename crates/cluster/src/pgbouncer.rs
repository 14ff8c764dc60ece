//! PgBouncer in front of a server.

use postgres::{Config, NoTls};

use crate::patience::PATIENCE;
use crate::{Host, Scratch, Service, output, within};

/// A running PgBouncer. It ends when this value is dropped.
pub struct PgBouncer {
    service: Service,
    config: Config,
    /// The directory of the configuration and the log. It is removed last.
    _directory: Scratch,
}

impl PgBouncer {
    /// Starts PgBouncer with this configuration, and waits until a client with these parameters can connect to it. `name` is a name
    /// that no other test uses. Returns `None` if PgBouncer is not installed.
    pub fn start(name: &str, settings: &str, config: &Config) -> Option<PgBouncer> {
        let host = Host::get();
        let mut command = host.debian_program("pgbouncer")?;
        let directory = Scratch::new(&format!("{name}.pgbouncer"));
        let (file, log) = (directory.0.join("pgbouncer.ini"), directory.0.join("log"));
        // By default, the socket is in the temporary directory, where another PgBouncer may have one.
        host.write(&file, &format!("{settings}\nunix_socket_dir =\n"));
        command.arg(&file);
        let config = config.clone();
        let mut service = Service::start(command, &log);
        let listens = || config.connect(NoTls).is_ok() || !service.is_running();
        assert!(within(PATIENCE, listens) && service.is_running(), "PgBouncer does not answer:\n{}", service.log());
        Some(PgBouncer { service, config, _directory: directory })
    }

    /// Returns the parameters for a connection through PgBouncer.
    pub fn config(&self) -> Config {
        self.config.clone()
    }

    /// Returns the name and version of PgBouncer.
    pub fn version(&self) -> String {
        let mut command = Host::get().debian_program("pgbouncer").expect("it runs");
        output(command.arg("--version")).lines().next().unwrap_or_default().to_string()
    }

    /// Returns the content of PgBouncer's log.
    pub fn log(&self) -> String {
        self.service.log()
    }
}
