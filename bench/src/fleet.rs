//! A registry with many servers: heartbeats without a pause, heartbeats of a fleet of 1,000 servers, and what a heartbeat costs
//! the server that sends it.

use std::hash::{BuildHasher, RandomState};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use cluster::{Answer, Client, Cluster};
use flake::IdFormat;
use postgres::{Config, NoTls};

use crate::cpu;
use crate::effort::{alternate, lasting, rounds, scaled};
use crate::machine::Machine;
use crate::pgbench::Pgbench;
use crate::registry_client::FleetServer;
use crate::report::{BenchReport, Figure};
use crate::server;
use crate::stats::{Histogram, Sample};

/// The number of servers.
const SERVERS: u64 = 1_000;
/// The default layout has 1,024 worker IDs, of which a registry keeps one quarter as spare worker IDs. This layout has twice as many.
const LAYOUT: &str = "41:11:11";
/// The default lease, and the mean time between two heartbeats that follows from it: the registrar waits 54 to 60 s.
const LEASE: Duration = Duration::from_hours(12);
const PERIOD: Duration = Duration::from_secs(57);
/// The number of connections at the same time.
const CONNECTIONS: usize = 8;
/// The numbers of rounds: of requests without a pause, of requests at the rate of the fleet, and of the registrar.
const ROUNDS: [usize; 3] = [9, 5, 5];
/// The number of requests in a turn without a pause, and the duration of the other turns.
const REQUESTS: u64 = 1_000;
const TURN: Duration = Duration::from_secs(20);

/// The requests that are compared. The last one is not sent at the rate of the fleet.
const RIVALS: [&str; 3] = ["heartbeat", "SELECT 1 over a connection of its own", "SELECT 1, pgbench --connect"];

/// A request of one of the servers, each with a connection of its own.
type ServerRequest<'a> = &'a (dyn Fn(usize) + Sync);

/// The outcome of a turn.
struct TurnResult {
    per_second: f64,
    /// In microseconds, with the time to connect.
    latencies: Histogram,
    /// The CPU time of the registry for one request in milliseconds.
    cpu: f64,
    seconds: f64,
}

/// Measures the heartbeats of a fleet.
pub fn run() -> BenchReport {
    let registry = server::fresh("fleet").unset("snowflake_pg.worker_id").start_registry(LAYOUT);
    let mut client = registry.connect();
    let format = IdFormat::parse(LAYOUT).expect("a layout");
    let count = scaled(SERVERS).max(CONNECTIONS as u64) as usize;
    let servers: Vec<_> = (0..count).map(|_| Mutex::new(FleetServer::new(format, LEASE))).collect();
    let config = registry.config("postgres");

    let heartbeat = |n: usize| servers[n % count].lock().expect("no thread has panicked").heartbeat(&config);
    println!("==> {count} servers claim a worker ID each");
    let claims = without_pause(&registry, &heartbeat, count);
    let mut figures = vec![
        Figure::new(
            "claims",
            "per s",
            &format!("{count} claims"),
            &["claim"],
            &[Sample::from_iter([claims.per_second])],
        ),
        Figure::new(
            "claims, p99",
            "ms",
            &format!("{count} claims"),
            &["claim"],
            &[Sample::from_iter([millis(&claims, 0.99)])],
        ),
    ];
    figures.extend(capacity(&registry, &mut client, &heartbeat));
    figures.extend(at_rate(&registry, &config, &heartbeat, count));
    figures.extend(registrar(&registry, &mut client));
    let notes = [
        "a heartbeat is a separate connection on which a client of the protocol calls hello() and renew(), over a \
         Unix socket, without a password and without TLS; `SELECT 1` over a separate connection uses the same client",
        "the clients and the registry share the processors; the CPU time is the time of all processes of the \
         registry's server",
        "at the rate of a fleet: requests are sent at random times, one per server in 57 s; a latency begins at the \
         time at which a request is due",
        "the layout is 41:11:11, because the default layout has room for 768 servers with a registry",
    ];
    BenchReport {
        part: "fleet".into(),
        machine: Machine::of(&mut client),
        notes: notes.map(String::from).to_vec(),
        figures,
    }
}

/// Measures requests without a pause.
fn capacity(registry: &Cluster, client: &mut Client, heartbeat: ServerRequest) -> Vec<Figure> {
    let (rounds, requests) = (rounds(ROUNDS[0]), scaled(REQUESTS) as usize);
    println!("==> heartbeats without a pause, {CONNECTIONS} connections, {rounds} rounds of {requests}");
    let config = registry.config("postgres");
    let pgbench = Pgbench::new(registry);
    let [per_second, cpu, p50, p99] = alternate(rounds, RIVALS.len(), |rival| {
        // WAL and pages that one rival has changed must not be written in another's turn.
        client.batch_execute("CHECKPOINT").expect("a superuser may");
        let turn = match rival {
            0 => without_pause(registry, heartbeat, requests),
            1 => without_pause(registry, &|_| select(&config), requests),
            _ => {
                let (before, begun) = (cpu::of_server(registry), Instant::now());
                let per_second = pgbench.reconnect("SELECT 1", CONNECTIONS, requests / CONNECTIONS);
                let cpu = (cpu::of_server(registry) - before) * 1e3 / requests as f64;
                TurnResult { per_second, latencies: Histogram::default(), cpu, seconds: begun.elapsed().as_secs_f64() }
            }
        };
        // pgbench does not measure how long it takes to connect.
        let [p50, p99] = [0.5, 0.99].map(|part| if rival < 2 { millis(&turn, part) } else { 0.0 });
        [turn.per_second, turn.cpu, p50, p99]
    });
    let size = format!("{requests} requests");
    let figure = |name: &str, unit: &str, rivals: usize, samples: &[Sample]| {
        Figure::new(&format!("requests without a pause{name}"), unit, &size, &RIVALS[..rivals], &samples[..rivals])
    };
    vec![
        figure("", "per s", 3, &per_second),
        figure(", CPU time of the registry for one", "ms", 3, &cpu),
        figure(", p50", "ms", 2, &p50),
        figure(", p99", "ms", 2, &p99),
    ]
}

/// Measures the requests of all servers at the rate of the default lease.
fn at_rate(registry: &Cluster, config: &Config, heartbeat: ServerRequest, count: usize) -> Vec<Figure> {
    let (rounds, time) = (rounds(ROUNDS[1]), lasting(TURN));
    println!("==> heartbeats of {count} servers, {rounds} rounds of {time:?}");
    let [cpu, p50, p99, slowest] = alternate(rounds, 2, |rival| {
        let selects = |_| select(config);
        let turn = at_times(registry, if rival == 0 { heartbeat } else { &selects }, &due(count, time), time);
        // The CPU time of the whole turn, in percent of one processor.
        [
            turn.cpu * turn.latencies.total() as f64 / 10.0 / turn.seconds,
            millis(&turn, 0.5),
            millis(&turn, 0.99),
            millis(&turn, 1.0),
        ]
    });
    let size = format!("{} s", time.as_secs_f64());
    let figure = |name: &str, unit: &str, samples: &[Sample]| {
        Figure::new(&format!("requests of 1,000 servers, one a minute each{name}"), unit, &size, &RIVALS[..2], samples)
    };
    vec![
        figure(", CPU time of the registry", "% of a processor", &cpu),
        figure(", p50", "ms", &p50),
        figure(", p99", "ms", &p99),
        figure(", slowest", "ms", &slowest),
    ]
}

/// Measures the registrar of a server whose heartbeats are a second apart.
fn registrar(registry: &Cluster, client: &mut Client) -> Vec<Figure> {
    let (rounds, time) = (rounds(ROUNDS[2]), lasting(TURN).max(Duration::from_secs(2)));
    println!("==> the registrar of a server, {rounds} rounds of {time:?}");
    let string = format!("host={} port=5432 user=postgres dbname=postgres", registry.socket().display());
    let server = server::fresh("fleet-server")
        .unset("snowflake_pg.worker_id")
        .set("snowflake_pg.registry", &string)
        .set("snowflake_pg.lease", "10min")
        .set("snowflake_pg.layout", LAYOUT)
        .start();
    let count = "SELECT coalesce(sum(count), 0)::bigint FROM snowflake_registry.node AS n
        JOIN snowflake_registry.servers AS s USING (worker_id) WHERE s.data_directory = current_setting('bench.directory')";
    client.batch_execute(&format!("SET bench.directory = '{}'", server.dir().display())).expect("a session may");
    let begun = Instant::now();
    while client.one::<i64>(count) == 0 {
        assert!(begun.elapsed() < Duration::from_secs(30), "the server gets no worker ID:\n{}", server.log());
        thread::sleep(Duration::from_millis(100));
    }
    let pid = cpu::process(&server, "snowflake_pg registrar");
    let [cpu, waits] = alternate(rounds, 1, |_| {
        let before = (client.one::<i64>(count), cpu::nanos(pid as i32), cpu::waits(pid));
        thread::sleep(time);
        let heartbeats = (client.one::<i64>(count) - before.0) as f64;
        [
            (cpu::nanos(pid as i32) - before.1) as f64 / 1e3 / heartbeats,
            (cpu::waits(pid) - before.2) as f64 / heartbeats,
        ]
    });
    let size = format!("{} s", time.as_secs_f64());
    vec![
        Figure::new("registrar, CPU time of a heartbeat", "µs", &size, &["registrar"], &cpu),
        Figure::new("registrar, waits in a heartbeat", "waits", &size, &["registrar"], &waits),
    ]
}

/// Sends requests on all connections, each without a pause.
fn without_pause(registry: &Cluster, request: ServerRequest, requests: usize) -> TurnResult {
    let before = cpu::of_server(registry);
    let begun = Instant::now();
    let latencies = on_all_connections(|first| {
        let mut latencies = Histogram::default();
        for n in (first..requests).step_by(CONNECTIONS) {
            let sent = Instant::now();
            request(n);
            latencies.add(sent.elapsed().as_micros() as i64, 1);
        }
        latencies
    });
    outcome(registry, before, begun, latencies)
}

/// Sends requests at these times after the beginning. A request that finds no free connection waits, and this counts.
fn at_times(registry: &Cluster, request: ServerRequest, due: &[Duration], time: Duration) -> TurnResult {
    let before = cpu::of_server(registry);
    let begun = Instant::now();
    let latencies = on_all_connections(|first| {
        let mut latencies = Histogram::default();
        for (n, due) in due.iter().enumerate().skip(first).step_by(CONNECTIONS) {
            let due = begun + *due;
            thread::sleep(due.saturating_duration_since(Instant::now()));
            request(n);
            latencies.add(due.elapsed().as_micros() as i64, 1);
        }
        latencies
    });
    thread::sleep((begun + time).saturating_duration_since(Instant::now()));
    outcome(registry, before, begun, latencies)
}

fn on_all_connections(work: impl Fn(usize) -> Histogram + Sync) -> Histogram {
    thread::scope(|scope| {
        let work = &work;
        let running: Vec<_> = (0..CONNECTIONS).map(|first| scope.spawn(move || work(first))).collect();
        running.into_iter().fold(Histogram::default(), |mut all, one| {
            all.merge(&one.join().expect("every request is answered"));
            all
        })
    })
}

fn outcome(registry: &Cluster, before: f64, begun: Instant, latencies: Histogram) -> TurnResult {
    let seconds = begun.elapsed().as_secs_f64();
    let requests = latencies.total() as f64;
    let cpu = (cpu::of_server(registry) - before) * 1e3 / requests;
    TurnResult { per_second: requests / seconds, latencies, cpu, seconds }
}

fn millis(turn: &TurnResult, part: f64) -> f64 {
    turn.latencies.quantile(part) / 1e3
}

/// Returns when the servers send their heartbeats within this time: at random times, as servers do that know nothing of each other.
fn due(servers: usize, time: Duration) -> Vec<Duration> {
    let requests = (servers as f64 * time.as_secs_f64() / PERIOD.as_secs_f64()).ceil() as u64;
    let random = RandomState::new();
    let mut due: Vec<_> = (0..requests).map(|n| time.mul_f64(random.hash_one(n) as f64 / u64::MAX as f64)).collect();
    due.sort_unstable();
    due
}

fn select(registry: &Config) {
    let mut client = registry.connect(NoTls).unwrap_or_else(|e| panic!("cannot connect to the registry: {e}"));
    client.simple_query("SELECT 1").expect("a session may");
}
