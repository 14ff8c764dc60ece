//! A registry and the servers of its fleet.

use std::fs;
use std::path::Path;

pub use cluster::SOON;
use cluster::{Answer, Builder, Client, Cluster, Host, command, processes_in, sqlstate, within};

pub const LAYOUT: &str = "41:10:12";

/// A layout with one worker ID, so that the next server of a fleet gets the worker ID of the last one.
pub const NARROW: &str = "41:0:22";

/// Starts a server with the registry of a fleet in its database `postgres`.
pub fn registry(name: &str) -> Cluster {
    Cluster::builder(name).start_registry(LAYOUT)
}

/// Returns the connection string of a registry.
pub fn string(registry: &Cluster) -> String {
    format!("host={} port=5432 user=postgres dbname=postgres", registry.socket().display())
}

/// Configures a server of the fleet whose heartbeats are a second apart.
pub fn server(name: &str, string: &str) -> Builder {
    Cluster::builder(name)
        .unset("snowflake_pg.worker_id")
        .set("snowflake_pg.registry", string)
        .set("snowflake_pg.lease", "10min")
}

/// Starts a registry, and a server of its fleet with this change. The server has renewed its grant, which is returned, too.
pub fn with_server(name: &str, change: impl FnOnce(Builder) -> Builder) -> (Cluster, Cluster, SeenServer) {
    let registry = registry(name);
    let server = change(server(&format!("{name}_1"), &string(&registry))).start();
    let seen = renewed(&registry, &server);
    (registry, server, seen)
}

/// A row of the registry's view of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenServer {
    pub worker: i32,
    pub holder: String,
    pub count: i64,
    pub state: String,
}

/// Returns what the registry knows about the server with this data directory, the latest worker ID first.
pub fn seen(registry: &Cluster, server: &Cluster) -> Vec<SeenServer> {
    let sql = "SELECT s.worker_id, s.holder::text, n.count, s.state
               FROM snowflake_registry.servers s JOIN snowflake_registry.node n USING (datacenter_id, worker_id)
               WHERE s.data_directory = $1 ORDER BY s.since DESC";
    let rows = registry.connect().query(sql, &[&server.dir().to_string_lossy().as_ref()]).expect("the view exists");
    rows.iter()
        .map(|row| SeenServer { worker: row.get(0), holder: row.get(1), count: row.get(2), state: row.get(3) })
        .collect()
}

/// Waits until the server has renewed a grant, and returns the row of its latest worker ID.
pub fn renewed(registry: &Cluster, server: &Cluster) -> SeenServer {
    renewed_above(registry, server, 1)
}

/// Waits until the count of the server's latest worker ID is above `count`.
pub fn renewed_above(registry: &Cluster, server: &Cluster, count: i64) -> SeenServer {
    let mut last = None;
    let there = within(SOON, || {
        last = seen(registry, server).into_iter().next();
        last.as_ref().is_some_and(|seen| seen.count > count)
    });
    assert!(there, "{last:?} does not reach {count}:\n{}", server.log());
    last.expect("it is there")
}

/// Waits until the log contains this text.
pub fn wait_for_log(server: &Cluster, text: &str) {
    assert!(within(SOON, || server.log().contains(text)), "no {text:?} in the log:\n{}", server.log());
}

/// Returns how often the log contains this text.
pub fn logged(server: &Cluster, text: &str) -> usize {
    server.log().matches(text).count()
}

/// Returns the process ID of the registrar of a server.
pub fn registrar(server: &Cluster) -> Option<u32> {
    let is_registrar = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline"));
        line.is_ok_and(|line| line.starts_with(b"postgres: snowflake_pg registrar"))
    };
    processes_in(server.dir()).into_iter().find(is_registrar)
}

/// Sends a signal to a process of a server.
pub fn signal(pid: u32, name: &str) {
    let sent = command("sh").args(["-c", "kill -s \"$0\" \"$1\"", name]).arg(pid.to_string()).status();
    assert!(sent.is_ok_and(|status| status.success()), "cannot send {name} to process {pid}");
}

/// Makes a server use another registry from now on.
pub fn move_to(server: &mut Cluster, registry: &Cluster) {
    server.set("snowflake_pg.registry", &string(registry));
    server.reload();
}

/// Returns the error of a session that requests an ID: its SQLSTATE, message, detail and hint.
pub fn refused(client: &mut Client) -> Option<(String, String, String, String)> {
    client.query("SELECT snowflake_nextval()", &[]).err().map(|error| sqlstate(&error))
}

/// The error of a server that has no worker ID.
pub const UNASSIGNED: &str = "the registry has not assigned a worker ID to this server";

/// Checks that a session that requests an ID gets this error, and returns the detail and the hint.
pub fn check_refused(client: &mut Client, message: &str) -> [String; 2] {
    let (code, found, detail, hint) = refused(client).expect("the server issues no IDs");
    assert_eq!((code.as_str(), found.as_str()), ("55000", message));
    [detail, hint]
}

/// Returns the worker ID that the server shows.
pub fn number(server: &Cluster) -> String {
    server.connect().one("SHOW snowflake_pg.worker_id")
}

/// Returns the state and the problem that the status shows.
pub fn status(client: &mut Client) -> String {
    client.one("SELECT concat_ws(': ', state, problem) FROM snowflake_status")
}

/// Replaces the contents of a data directory, which remains the same directory.
pub fn replace(dir: &Path, with: &Path) {
    for entry in fs::read_dir(dir).expect("a data directory").flatten() {
        let path = entry.path();
        let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.expect("the server is stopped");
    }
    Host::get().copy_dir(with, dir);
}
