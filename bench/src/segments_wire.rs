//! One number a request from 64 clients over TCP, directly and through PgBouncer: what Leaf reports for its service of segments.

use cluster::{Cluster, PgBouncer, loopback};
use postgres::Config;

use crate::effort::{alternate, rounds, scaled};
use crate::pgbench::Pgbench;
use crate::report::Figure;
use crate::segments_server;
use crate::server;

/// The number of rounds, the duration of one run in seconds, and the number of clients.
const ROUNDS: usize = 7;
const SECONDS: u64 = 2;
const CLIENTS: usize = 64;
/// The port of all servers that the harness starts.
pub const PORT: u16 = 5432;

/// The names and statements of the requests. The last one is the floor of a request.
const RIVALS: [(&str, &str); 4] = [
    ("snowflake_segment_nextval()", "SELECT snowflake_segment_nextval('bench')"),
    ("nextval, CACHE 1", "SELECT nextval('segments_1')"),
    ("snowflake_nextval()", "SELECT snowflake_nextval()"),
    ("constant", "SELECT 1"),
];

/// Measures requests over TCP.
pub fn run() -> Vec<Figure> {
    let address = loopback(1);
    let server = segments_server::start("segments", |name| server::unthrottled(name).set("listen_addresses", &address));
    let pool = loopback(0);
    let mut figures = measure(&server, "directly", &address);
    match pooler("bench_segments", &address, &pool) {
        Some(pgbouncer) => figures.extend(measure(&server, &format!("through {}", pgbouncer.version()), &pool)),
        None => eprintln!("note: there is no pgbouncer (scripts/setup bench); what goes through it is left out"),
    }
    figures
}

/// Starts PgBouncer on the address `pool`, in front of the server on a different address. Returns `None` if it is not installed.
pub fn pooler(name: &str, address: &str, pool: &str) -> Option<PgBouncer> {
    let settings = format!(
        "[databases]
postgres = host={address} port={PORT} dbname=postgres user=postgres
[pgbouncer]
listen_addr = {pool}
listen_port = {PORT}
; Every client is the user of the line above, because this server trusts every connection from this machine.
auth_type = any
max_client_conn = 200
default_pool_size = 16
pool_mode = transaction"
    );
    PgBouncer::start(name, &settings, &config(pool))
}

fn measure(server: &Cluster, route: &str, address: &str) -> Vec<Figure> {
    let (rounds, seconds) = (rounds(ROUNDS), scaled(SECONDS));
    println!("==> one number a request, {route}, {CLIENTS} clients, {rounds} rounds");
    let pgbench = Pgbench::new(server).at(address, PORT);
    let measured = alternate(rounds, RIVALS.len(), |n| {
        let outcome = pgbench.run(RIVALS[n].1, CLIENTS, seconds, 1.0);
        let latency = |part| outcome.latencies.quantile(part);
        [outcome.tps, latency(0.5), latency(0.99), latency(0.999)]
    });
    let names = RIVALS.map(|(name, _)| name);
    let kinds = [("requests", "per s"), ("p50", "µs"), ("p99", "µs"), ("p99.9", "µs")];
    let figures = kinds.iter().zip(&measured).map(|((kind, unit), samples)| {
        Figure::new(&format!("one number a request, {route}, {kind}"), unit, &format!("{seconds} s"), &names, samples)
    });
    figures.collect()
}

fn config(host: &str) -> Config {
    let mut config = Config::new();
    config.host(host).port(PORT).user("postgres").dbname("postgres");
    config
}
