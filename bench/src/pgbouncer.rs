//! A PgBouncer in transaction mode for the benchmark.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use cluster::{Host, command, repository};

/// A running PgBouncer. It ends when this value is dropped.
pub struct PgBouncer {
    process: Child,
    directory: PathBuf,
    port: u16,
}

impl PgBouncer {
    /// Starts PgBouncer in front of the server at this address. Returns `None` if it is not installed.
    pub fn start(host: &str, port: u16) -> Option<PgBouncer> {
        let installed = program()?;
        let machine = Host::get();
        let directory = machine.fresh_dir("bench-pgbouncer");
        // The program is copied, because the servers' user may not be able to enter the repository.
        let program = directory.join("pgbouncer");
        fs::copy(installed, &program).expect("the program can be copied");
        let free = TcpListener::bind("127.0.0.1:0").and_then(|probe| probe.local_addr()).expect("a free port");
        let settings = format!(
            "[databases]
postgres = host={host} port={port} dbname=postgres user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {}
unix_socket_dir =
; Every client is the user of the line above, as this server trusts whoever comes from this machine.
auth_type = any
pool_mode = transaction
",
            free.port()
        );
        let file = directory.join("pgbouncer.ini");
        machine.write(&file, &settings);
        let log = fs::File::create(directory.join("log")).expect("a log can be created");
        let process = machine
            .command(&program)
            .arg(&file)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("pgbouncer can be run");
        Some(PgBouncer { process, directory, port: free.port() })
    }

    /// Returns the port on 127.0.0.1 on which PgBouncer listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the name and version of PgBouncer.
    pub fn version(&self) -> String {
        let said = command(self.directory.join("pgbouncer")).arg("--version").output();
        let said = said.expect("pgbouncer tells its version");
        String::from_utf8_lossy(&said.stdout).lines().next().unwrap_or_default().to_string()
    }

    /// Returns the content of PgBouncer's log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.directory.join("log")).unwrap_or_default()
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Returns the path of the system's PgBouncer, or of the PgBouncer that `scripts/setup bench` installed.
fn program() -> Option<PathBuf> {
    let unpacked = repository().join("target/tools/bin/pgbouncer");
    [Path::new("/usr/sbin/pgbouncer"), &unpacked].into_iter().find(|path| path.exists()).map(PathBuf::from)
}
