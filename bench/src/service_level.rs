//! A service of IDs: how many of the requests over TCP take at most a millisecond, at rising rates. Requests are due at random times,
//! whether or not earlier ones have been answered, and the time of a request begins when it is due.

use cluster::{Cluster, loopback};

use crate::effort::{alternate, rounds, scaled, steps};
use crate::machine::Machine;
use crate::pgbench::Pgbench;
use crate::report::{BenchReport, Figure};
use crate::segments_wire::{PORT, pooler};
use crate::stats::Sample;
use crate::{segments_server, server};

/// The number of rounds, and the duration of one run in seconds.
const ROUNDS: usize = 4;
const SECONDS: u64 = 2;
/// The number of connections. This is several times the number of requests that are in progress at the same time.
const CLIENTS: usize = 16;
/// The rates, in requests per second. At lower rates, the requests that wait for a flush of the mark, two per second, would be more than
/// one in a thousand.
const RATES: [usize; 6] = [4_000, 8_000, 11_000, 16_000, 23_000, 32_000];
/// The longest time of a request that is in time, in microseconds.
const LIMIT: i64 = 1_000;
/// The service levels: the percentage of requests that must be in time.
const LEVELS: [f64; 2] = [99.9, 99.0];

/// The names and statements of the requests. The last one is the floor of a request.
const RIVALS: [(&str, &str); 3] = [
    ("snowflake_nextval()", "SELECT snowflake_nextval()"),
    ("snowflake_segment_nextval()", "SELECT snowflake_segment_nextval('bench')"),
    ("SELECT 1", "SELECT 1"),
];

/// Measures the requests directly and through PgBouncer.
pub fn run() -> BenchReport {
    let (address, pool) = (loopback(1), loopback(0));
    let server = segments_server::start("service", |name| server::fresh(name).set("listen_addresses", &address));
    let machine = Machine::of(&mut server.session());
    let mut figures = Vec::new();
    for protocol in ["prepared", "extended"] {
        figures.extend(measure(&server, &format!("directly, {protocol}"), &address, protocol, machine.cores));
    }
    match pooler("bench_service", &address, &pool) {
        Some(pgbouncer) => {
            let route = format!("through {}, extended", pgbouncer.version());
            figures.extend(measure(&server, &route, &pool, "extended", machine.cores));
        }
        None => eprintln!("note: there is no pgbouncer (scripts/setup bench); what goes through it is left out"),
    }
    let notes = [
        "`pgbench --rate` over TCP with 16 connections and two threads, on the processors of the server; the time of a request begins when \
         it is due, so it contains the wait for a connection; the first half second of each run is not counted",
        "the highest rate is the highest measured rate at which the median of all rounds is at least 99.9 % or 99 %, or 0 if there is none",
        "prepared: the statement is prepared once; extended: each request is parsed, bound and executed by the extended protocol; \
         PgBouncer before 1.21 does not pass on prepared statements",
        "per processor: divided by the number of processors, which also run the clients",
    ];
    BenchReport { part: "service".into(), machine, notes: notes.map(String::from).to_vec(), figures }
}

fn measure(server: &Cluster, route: &str, address: &str, protocol: &str, cores: usize) -> Vec<Figure> {
    let (rounds, seconds) = (rounds(ROUNDS), scaled(SECONDS));
    println!("==> requests within 1 ms, {route}, {rounds} rounds");
    let pgbench = Pgbench::new(server).over(address, PORT, protocol);
    let at_rate = |rate: &usize| {
        let rate = *rate as u64;
        let [shares] = alternate(rounds, RIVALS.len(), |n| {
            let latencies = pgbench.at_rate(RIVALS[n].1, CLIENTS, seconds, scaled(rate)).latencies;
            [100.0 * latencies.part(LIMIT)]
        });
        (rate, shares)
    };
    let shares: Vec<(u64, Vec<Sample>)> = steps(&RATES).iter().map(at_rate).collect();
    let names = RIVALS.map(|(name, _)| name);
    let turn = format!("{seconds} s");
    let share = |(rate, shares): &(u64, Vec<Sample>)| {
        let name = format!("requests within 1 ms, {route}");
        Figure::new(&name, "%", &turn, &names, shares).at("requests per s", *rate)
    };
    let mut figures: Vec<Figure> = shares.iter().map(share).collect();
    for level in LEVELS {
        let reached = |n: usize| shares.iter().filter(move |(_, shares)| shares[n].median() >= level);
        let rates: Vec<u64> = (0..RIVALS.len()).map(|n| reached(n).map(|(rate, _)| *rate).max().unwrap_or(0)).collect();
        let mut add = |kind: &str, unit: &str, by: f64| {
            let values: Vec<Sample> = rates.iter().map(|rate| Sample::from_iter([*rate as f64 / by])).collect();
            let name = format!("highest rate with {level} % within 1 ms, {route}{kind}");
            figures.push(Figure::new(&name, unit, &turn, &names, &values));
        };
        add("", "requests per s", 1.0);
        add(", per processor", "requests per s", cores as f64);
        match rates[RIVALS.len() - 1] {
            0 => {}
            floor => add(", relative to SELECT 1", "x", floor as f64),
        }
    }
    figures
}
