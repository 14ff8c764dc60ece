//! A service of IDs: the highest rate of requests over TCP at which 99.9 % of them take at most a millisecond. Requests are due at random
//! times, whether or not earlier ones have been answered, and the time of a request begins when it is due.

use std::cell::RefCell;

use cluster::{Cluster, loopback};

use crate::effort::{alternate, rounds, scaled};
use crate::machine::Machine;
use crate::pgbench::Pgbench;
use crate::report::{BenchReport, Figure};
use crate::search::{SearchBounds, highest};
use crate::segments_wire::{PORT, pooler};
use crate::stats::Sample;
use crate::{segments_server, server};

/// The number of rounds, and the duration of one run in seconds.
const ROUNDS: usize = 6;
const SECONDS: u64 = 2;
/// The number of connections. This is several times the number of requests that are in progress at the same time.
const CLIENTS: usize = 16;
/// The lowest rate, the highest one, and the one that is tried first.
const LEAST: u64 = 125;
const MOST: u64 = 128_000;
const BEGIN: u64 = 1_000;
/// How many times the interval between a rate and its product with the square root of 2 is divided. The result is exact to the 16th root
/// of 2, which is 4 %.
const STEPS: u64 = 3;
/// The part of the requests that takes at most this many microseconds.
const PART: f64 = 0.999;
const LIMIT: f64 = 1_000.0;

/// The names and statements of the requests. The last one is the floor of a request.
const RIVALS: [(&str, &str); 3] = [
    ("snowflake_nextval()", "SELECT snowflake_nextval()"),
    ("snowflake_segment_nextval()", "SELECT snowflake_segment_nextval('bench')"),
    ("SELECT 1", "SELECT 1"),
];

/// Measures the highest rates directly and through PgBouncer.
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
         it is due, so it contains the wait for a connection; a rate of 1 means that not even 125 requests per s were in time",
        "a rate counts if 99.9 % of the requests of a run of 2 s, without its first half second, take at most 1 ms, in one of two \
         runs; rates grow by the square root of 2 until one does not count, and the interval is then divided three times, to 4 %",
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
    let bounds = SearchBounds { rates: (LEAST, scaled(MOST).max(2 * LEAST)), steps: scaled(STEPS) };
    // A search begins below the previous result, so that most searches need few runs.
    let begins = RefCell::new([BEGIN; RIVALS.len()]);
    let [rates] = alternate(rounds, RIVALS.len(), |n| {
        let begin = begins.borrow()[n];
        let rate = highest(begin, bounds, |rate| {
            let latencies = pgbench.at_rate(RIVALS[n].1, CLIENTS, seconds, rate).latencies;
            latencies.total() > 0 && latencies.quantile(PART) <= LIMIT
        });
        begins.borrow_mut()[n] = (rate * 4 / 5).max(LEAST);
        // A rate of 0 would make the ratios infinite.
        [rate.max(1) as f64]
    });
    let names = RIVALS.map(|(name, _)| name);
    let floor = &rates[RIVALS.len() - 1];
    let relative: Vec<Sample> = rates.iter().map(|rate| rate.over(floor)).collect();
    let each: Vec<Sample> =
        rates.iter().map(|rate| rate.values().iter().map(|rate| rate / cores as f64).collect()).collect();
    let turn = format!("one search in runs of {seconds} s");
    let figure = |kind: &str, unit: &str, samples: &[Sample]| {
        Figure::new(&format!("highest rate with 99.9 % within 1 ms, {route}{kind}"), unit, &turn, &names, samples)
    };
    vec![
        figure("", "requests per s", &rates),
        figure(", relative to SELECT 1", "x", &relative),
        figure(", per processor", "requests per s", &each),
    ]
}
