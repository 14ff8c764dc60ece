//! `make bench-starvation REV=..`: measures how long a session waits for one ID while other sessions reserve blocks as fast as
//! they can. Compares this tree's library with the library of a different revision, on servers that take turns.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bench::effort::{lasting, rounds, steps};
use bench::stats::{Histogram, heading, row};
use cluster::{Client, Cluster};
use postgres::NoTls;

/// The number of rounds. Each round measures every server with every number of attackers.
const ROUNDS: usize = 5;
/// The duration of one measurement.
const TIME: Duration = Duration::from_secs(5);
/// The pause between two IDs in the session that is measured.
const PAUSE: Duration = Duration::from_millis(3);
/// The numbers of attackers. The measurement without attackers shows the influence of the machine.
const ATTACKERS: [usize; 5] = [0, 1, 5, 20, 60];
/// The default layout, and a layout with long ticks.
const LAYOUTS: [&str; 2] = ["41:10:12", "31:10:22@1s"];

fn main() {
    let directories: Vec<String> = std::env::args().skip(1).collect();
    let [other, this] = &directories[..] else { panic!("two directories with a library each") };
    let libraries = [("other", other), ("this", this)];
    for (number, layout) in LAYOUTS.iter().enumerate() {
        let servers = libraries.map(|(name, directory)| {
            Cluster::builder(&format!("starvation_{name}_{number}"))
                .set("dynamic_library_path", &format!("{directory}:$libdir"))
                .set("snowflake_pg.layout", layout)
                .start()
        });
        let blocks = servers.each_ref().map(largest_block);
        println!("\nlayout {layout}: blocks of {} IDs (other) and of {} (this)", blocks[0], blocks[1]);
        let mut found: [[Histogram; ATTACKERS.len()]; 2] = Default::default();
        for round in 0..rounds(ROUNDS) {
            for (place, &attackers) in steps(&ATTACKERS).iter().enumerate() {
                let mut order = [0, 1];
                order.rotate_left(round % 2);
                for n in order {
                    found[n][place].merge(&beside(&servers[n], attackers, blocks[n]));
                }
            }
        }
        let title = format!("One ID beside sessions that reserve blocks, layout {layout}: ms from call to answer");
        heading(&title, &["attackers", "library", "IDs", "p50", "p99", "slowest"]);
        for (place, &attackers) in steps(&ATTACKERS).iter().enumerate() {
            for (n, (name, _)) in libraries.iter().enumerate() {
                let counts = &found[n][place];
                let ms = |part| format!("{:.2}", counts.quantile(part) / 1e3);
                let (ids, attackers) = (counts.total().to_string(), attackers.to_string());
                row(&[&attackers, name, &ids, &ms(0.5), &ms(0.99), &ms(1.0)]);
            }
        }
    }
}

/// Opens a session with only the functions that are measured. The rest of the extension's script may not fit the other library.
fn session(server: &Cluster) -> Client {
    let mut client = server.connect();
    client
        .batch_execute(
            "CREATE OR REPLACE FUNCTION pg_temp.nextval() RETURNS bigint VOLATILE LANGUAGE c
             AS 'snowflake_pg', 'snowflake_nextval_wrapper';
             CREATE OR REPLACE FUNCTION pg_temp.reserve(integer) RETURNS bigint VOLATILE STRICT LANGUAGE c
             AS 'snowflake_pg', 'snowflake_reserve_wrapper'",
        )
        .expect("the library has these functions");
    client
}

/// Returns the size of the largest block that a library reserves. The size is taken from the error for a block that is too large.
fn largest_block(server: &Cluster) -> u64 {
    let refused = session(server).batch_execute("SELECT pg_temp.reserve(2147483647)").expect_err("no tick has so many");
    let detail = refused.as_db_error().and_then(|error| error.detail()).unwrap_or_default().to_string();
    let largest = detail.trim_end_matches('.').rsplit(' ').next().and_then(|number| number.parse().ok());
    largest.unwrap_or_else(|| panic!("no number: {detail}"))
}

/// Returns the duration of each call of one session in microseconds, with this many attackers.
fn beside(server: &Cluster, attackers: usize, block: u64) -> Histogram {
    let (time, ended) = (lasting(TIME), AtomicBool::new(false));
    thread::scope(|scope| {
        let mut waiting = Vec::new();
        for _ in 0..attackers {
            let mut attacker = session(server);
            waiting.push(attacker.cancel_token());
            let ended = &ended;
            scope.spawn(move || {
                while !ended.load(Ordering::Relaxed) {
                    let block = attacker.batch_execute(&format!("SELECT pg_temp.reserve({block})"));
                    assert!(block.is_ok() || ended.load(Ordering::Relaxed), "{block:?}");
                }
            });
        }
        let mut victim = session(server);
        let statement = victim.prepare("SELECT pg_temp.nextval()").expect("a statement");
        let mut counts = Histogram::default();
        let begun = Instant::now();
        while begun.elapsed() < time {
            let call = Instant::now();
            victim.query_one(&statement, &[]).expect("an ID");
            counts.add(call.elapsed().as_micros() as i64, 1);
            thread::sleep(PAUSE);
        }
        ended.store(true, Ordering::Relaxed);
        // A request for a block can wait for as many seconds as there are attackers.
        waiting.iter().for_each(|attacker| attacker.cancel_query(NoTls).expect("the server answers"));
        counts
    })
}
