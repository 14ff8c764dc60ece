//! An application that fetches its IDs over the network: one ID at a time and a thousand IDs at a time, directly and through
//! PgBouncer.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use cluster::{Client, PgBouncer, loopback};
use postgres::{Config, NoTls, Statement};

use crate::effort::{alternate, lasting, rounds};
use crate::machine::Machine;
use crate::report::{BenchReport, Figure};
use crate::rivals::{self, Rival};
use crate::server::{self, timed};
use crate::stats::{Histogram, Sample};

/// The number of rounds. Each round runs every statement on every route.
const ROUNDS: usize = 9;
/// The duration of one run.
const TURN: Duration = Duration::from_millis(800);
/// The pause before a run, in which the lead of the previous run returns to zero.
const PAUSE: Duration = Duration::from_millis(120);
/// The number of IDs in a batch.
const BATCH: u64 = 1_000;
/// The port of all servers that the harness starts.
const PORT: u16 = 5432;

/// The names and statements of the requests for one ID and for a batch, snowflakes first.
const ONE: [(&str, &str); 2] =
    [("snowflake_nextval()", "SELECT snowflake_nextval()"), ("nextval", "SELECT nextval('wire_sequence')")];
const MANY: [(&str, &str); 3] = [
    ("snowflake_nextval_batch(1000)", "SELECT snowflake_nextval_batch(1000)"),
    ("nextval, 1000 rows", "SELECT nextval('wire_sequence') FROM generate_series(1, 1000)"),
    ("snowflake_reserve(1000)", "SELECT snowflake_reserve(1000)"),
];

/// The requests for IDs: their names and statements.
struct Requests {
    one: Vec<(&'static str, String)>,
    many: Vec<(&'static str, String)>,
}

impl Requests {
    /// Returns the requests, with those of other keys at the end.
    fn with(others: &[Rival]) -> Requests {
        let own = |requests: &[(&'static str, &str)]| -> Vec<(&'static str, String)> {
            requests.iter().map(|(name, sql)| (*name, sql.to_string())).collect()
        };
        let (mut one, mut many) = (own(&ONE), own(&MANY));
        for rival in others {
            one.push((rival.name, format!("SELECT {}", rival.expression)));
            many.push((rival.name, format!("SELECT {} FROM generate_series(1, {BATCH})", rival.expression)));
        }
        Requests { one, many }
    }
}

/// A route to the server.
struct Route {
    name: String,
    client: Client,
    prepared: bool,
}

/// A statement that is sent on a route.
struct RoutedStatement<'a> {
    route: usize,
    sql: &'a str,
    prepared: Option<Statement>,
    ids: u64,
}

/// Measures one connection that sends one request at a time.
pub fn run() -> BenchReport {
    let address = free_address();
    let server = server::fresh("wire").set("listen_addresses", &address).start();
    let mut control = server::session(&server);
    timed(&mut control, "CREATE SEQUENCE wire_sequence");
    let pool = loopback(0);
    let settings = format!(
        "[databases]
postgres = host={address} port={PORT} dbname=postgres user=postgres
[pgbouncer]
listen_addr = {pool}
listen_port = {PORT}
; Every client is the user of the line above, because this server trusts every connection from this machine.
auth_type = any
pool_mode = transaction"
    );
    let pgbouncer = PgBouncer::start("bench", &settings, &config(&pool, PORT));
    let mut routes = vec![
        Route { name: "directly, prepared".into(), client: connect(&address, PORT), prepared: true },
        Route { name: "directly, simple query".into(), client: connect(&address, PORT), prepared: false },
    ];
    match &pgbouncer {
        Some(pgbouncer) => {
            let name = format!("through {}, simple query", pgbouncer.version());
            routes.push(Route {
                name,
                client: pgbouncer.config().connect(NoTls).expect("it has just accepted one"),
                prepared: false,
            });
        }
        None => eprintln!("note: there is no pgbouncer (scripts/setup bench); what goes through it is left out"),
    }
    let notes = [
        "one connection of the Rust crate postgres over TCP to the same machine, one request at a time",
        "PgBouncer in transaction mode, which cannot pass on prepared statements before version 1.21",
        "snowflake_reserve(1000) returns the first of 1000 consecutive IDs; a millisecond of the default layout has \
         room for four such blocks, so requests that follow each other faster wait for the clock",
    ];
    let requests = Requests::with(&rivals::installed(&mut control));
    let figures = measure(&mut routes, &requests);
    BenchReport {
        part: "wire".into(),
        machine: Machine::of(&mut control),
        notes: notes.map(String::from).to_vec(),
        figures,
    }
}

fn measure(routes: &mut [Route], Requests { one: singles, many: batches }: &Requests) -> Vec<Figure> {
    let rounds = rounds(ROUNDS);
    println!("==> IDs over the wire, {rounds} rounds of {} routes", routes.len());
    let mut requests = Vec::new();
    for (number, route) in routes.iter_mut().enumerate() {
        for (n, (_, sql)) in singles.iter().chain(batches).enumerate() {
            let prepared = route.prepared.then(|| route.client.prepare(sql).expect("a statement can be prepared"));
            requests.push(RoutedStatement {
                route: number,
                sql,
                prepared,
                ids: if n < singles.len() { 1 } else { BATCH },
            });
        }
    }
    let measured = alternate(rounds, requests.len(), |n| {
        std::thread::sleep(PAUSE);
        let request = &requests[n];
        repeat(&mut routes[request.route].client, request)
    });
    let turn = format!("{} ms", lasting(TURN).as_millis());
    let all = singles.len() + batches.len();
    let mut figures = Vec::new();
    for (number, route) in routes.iter().enumerate() {
        let of_route = measured.each_ref().map(|samples| &samples[number * all..][..all]);
        let (one, many) =
            (of_route.map(|samples| &samples[..singles.len()]), of_route.map(|samples| &samples[singles.len()..]));
        figures.extend(compare(&format!("one ID a request, {}", route.name), &turn, singles, one));
        figures.extend(compare(&format!("1,000 IDs a request, {}", route.name), &turn, batches, many));
    }
    figures
}

/// Returns the figures of requests that return the same number of IDs on the same route.
fn compare(title: &str, turn: &str, requests: &[(&str, String)], measured: [&[Sample]; 3]) -> Vec<Figure> {
    let names: Vec<_> = requests.iter().map(|(name, _)| *name).collect();
    let kinds = [("IDs", "per s"), ("p50", "µs"), ("p99", "µs")].into_iter().zip(measured);
    kinds.map(|((kind, unit), samples)| Figure::new(&format!("{title}, {kind}"), unit, turn, &names, samples)).collect()
}

/// Repeats a request. Returns the number of IDs per second, and the median and 99th percentile of the requests' durations in
/// microseconds.
fn repeat(client: &mut Client, request: &RoutedStatement) -> [f64; 3] {
    let time = lasting(TURN);
    let mut nanos = Histogram::default();
    let begin = Instant::now();
    while begin.elapsed() < time {
        let asked = Instant::now();
        match &request.prepared {
            Some(statement) => drop(client.query(statement, &[]).expect("IDs can be fetched")),
            None => drop(client.simple_query(request.sql).expect("IDs can be fetched")),
        }
        nanos.add(asked.elapsed().as_nanos() as i64, 1);
    }
    let seconds = begin.elapsed().as_secs_f64();
    let micros = |part| nanos.quantile(part) / 1e3;
    [(nanos.total() * request.ids) as f64 / seconds, micros(0.5), micros(0.99)]
}

/// Returns a loopback address on which no other program uses the harness's port.
fn free_address() -> String {
    (1..255)
        .map(|last| format!("127.0.15.{last}"))
        .find(|address| TcpListener::bind((address.as_str(), PORT)).is_ok())
        .expect("a free loopback address")
}

fn connect(host: &str, port: u16) -> Client {
    config(host, port).connect(NoTls).unwrap_or_else(|e| panic!("cannot connect over TCP: {e}"))
}

fn config(host: &str, port: u16) -> Config {
    let mut config = Config::new();
    config.host(host).port(port).user("postgres").dbname("postgres");
    config
}
