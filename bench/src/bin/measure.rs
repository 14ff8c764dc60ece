//! `make bench`: what an ID costs, beside what it replaces. Every figure is a median over rounds in which all rivals take
//! turns on one server, so that a noisy machine is noisy for all of them; compare ratios, not nanoseconds.

use std::time::{Duration, Instant};

use bench::stats::{Sample, heading, row};
use bench::{cpu, rounds};
use cluster::{Answer, Client, Cluster};

/// Rounds of the INSERTs, all rivals in each.
const INSERT_ROUNDS: usize = 11;
/// Rounds of the cost per ID, a small difference of two large numbers.
const COST_ROUNDS: usize = 51;
/// Runs of each number of sessions.
const SUSTAINED_ROUNDS: usize = 7;
/// IDs of one burst: half of what `max_ahead` = 100 ms lets the default layout issue at once, so that nobody is throttled.
const BURST: u64 = 200_000;
/// Pause after a burst, in which the lead falls back to nothing.
const PAUSE: Duration = Duration::from_millis(60);
/// IDs per second that the default layout allows one server: 4096 per millisecond.
const LIMIT: f64 = 4_096_000.0;
/// Length of one sustained run.
const SUSTAINED: Duration = Duration::from_secs(3);
/// Rows of one bulk INSERT.
const ROWS: u64 = 100_000;

/// What makes a key, and the type it has.
const RIVALS: [(&str, &str, &str); 6] = [
    ("snowflake_nextval()", "snowflake_nextval()", "bigint"),
    ("clock_timestamp()", "clock_timestamp()", "timestamptz"),
    ("nextval, CACHE 1000", "nextval('bench_cache_1000')", "bigint"),
    ("nextval, CACHE 1", "nextval('bench_cache_1')", "bigint"),
    ("gen_random_uuid()", "gen_random_uuid()", "uuid"),
    ("PL/pgSQL snowflake", "bench_plpgsql_snowflake()", "bigint"),
];

const SETUP: &str = "
CREATE EXTENSION IF NOT EXISTS snowflake_pg;
DROP SEQUENCE IF EXISTS bench_cache_1, bench_cache_1000, bench_plpgsql CASCADE;
CREATE SEQUENCE bench_cache_1;
CREATE SEQUENCE bench_cache_1000 CACHE 1000;
CREATE SEQUENCE bench_plpgsql;
CREATE OR REPLACE FUNCTION bench_plpgsql_snowflake() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1288834974657) << 22
        | 7 << 12 | nextval('bench_plpgsql') % 4096;
END $$";

fn main() {
    let server = bench::server().running().unwrap_or_else(|| {
        let mut server = bench::server().open();
        server.start();
        server
    });
    let mut client = session(&server);
    client.batch_execute(SETUP).expect("the rivals can be set up");
    println!("{}", client.one::<String>("SELECT version()"));
    println!(
        "cost: {} rounds of {BURST} calls; sustained: {} runs of {} s; INSERT: {} rounds of {ROWS} rows",
        rounds(COST_ROUNDS),
        rounds(SUSTAINED_ROUNDS),
        SUSTAINED.as_secs(),
        rounds(INSERT_ROUNDS)
    );
    cost(&mut client);
    sustained(&server, &mut client);
    insert(&mut client);
    println!("\nbench: ok");
}

/// A connection whose plans hold only what is measured.
fn session(server: &Cluster) -> Client {
    let mut client = server.connect();
    // work_mem: the rows of generate_series must not go through a file.
    let settings = "SET jit = off; SET max_parallel_workers_per_gather = 0; SET work_mem = '256MB'";
    client.batch_execute(settings).expect("a session may set these");
    client
}

fn timed(client: &mut Client, sql: &str) -> f64 {
    let begin = Instant::now();
    client.batch_execute(sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
    begin.elapsed().as_secs_f64()
}

/// Cost per call, less that of the loop around it.
fn cost(client: &mut Client) {
    cost_of(client, 1, "one call a row");
    // The processor overlaps a lone call with the row's other work; ten in a row show more of what a call takes.
    cost_of(client, 10, "ten calls a row");
}

fn cost_of(client: &mut Client, calls: u64, title: &str) {
    let burst = |expression: &str| {
        let columns = vec![format!("count({expression})"); calls as usize].join(", ");
        format!("SELECT {columns} FROM generate_series(1, {})", BURST / calls)
    };
    let mut samples: Vec<Sample> = RIVALS.iter().map(|_| Sample::default()).collect();
    for round in 0..=rounds(COST_ROUNDS) {
        for ((_, expression, _), sample) in RIVALS.iter().zip(&mut samples) {
            std::thread::sleep(PAUSE);
            let difference = timed(client, &burst(expression)) - timed(client, &burst("1"));
            // The first round only warms up.
            if round > 0 {
                sample.push(difference * 1e9 / BURST as f64);
            }
        }
    }
    heading(
        &format!("Cost per ID, one session below the limit, {title}"),
        &["", "ns", "min .. max", "snowflake_nextval() is"],
    );
    let ours = samples[0].median();
    for ((name, ..), sample) in RIVALS.iter().zip(&samples) {
        row(&[name, &format!("{:.0}", sample.median()), &sample.spread(0), &ratio(ours, sample.median())]);
    }
}

/// IDs per second with sessions that never pause, and the CPU time an ID takes meanwhile.
fn sustained(server: &Cluster, client: &mut Client) {
    let burst = format!("SELECT count(snowflake_nextval()) FROM generate_series(1, {BURST})");
    let below = {
        let pid: i32 = client.one("SELECT pg_backend_pid()");
        let mut sample = Sample::default();
        for _ in 0..rounds(COST_ROUNDS) {
            std::thread::sleep(PAUSE);
            let begin = cpu::nanos(pid);
            timed(client, &burst);
            sample.push((cpu::nanos(pid) - begin) as f64 / BURST as f64);
        }
        sample
    };
    heading(
        "Sustained, sessions that never pause",
        &["sessions", "IDs per ms", "of the limit", "CPU ns per ID", "of one session below the limit"],
    );
    row(&["1, below the limit", "", "", &format!("{:.0}", below.median()), "1.00"]);
    let counts = [1, 2, 8];
    let mut rates = counts.map(|_| Sample::default());
    let mut cpus = counts.map(|_| Sample::default());
    for _ in 0..rounds(SUSTAINED_ROUNDS) {
        for (n, sessions) in counts.iter().enumerate() {
            let (rate, cpu) = sustain(server, *sessions);
            rates[n].push(rate);
            cpus[n].push(cpu);
        }
    }
    for (n, sessions) in counts.iter().enumerate() {
        row(&[
            &sessions.to_string(),
            &format!("{:.0}", rates[n].median() / 1e3),
            &format!("{:.1} %", rates[n].median() / LIMIT * 100.0),
            &format!("{:.0}", cpus[n].median()),
            &format!("{:.2}", cpus[n].median() / below.median()),
        ]);
    }
}

/// IDs per second and CPU nanoseconds per ID of `sessions` sessions at their limit.
fn sustain(server: &Cluster, sessions: usize) -> (f64, f64) {
    // Small enough that what is under way when the time ends does not matter.
    const PIECE: u64 = 20_000;
    let sql = format!("SELECT count(snowflake_nextval()) FROM generate_series(1, {PIECE})");
    let warm = Instant::now() + Duration::from_millis(500);
    let until = warm + SUSTAINED;
    let running: Vec<_> = (0..sessions)
        .map(|_| {
            let mut client = session(server);
            let sql = sql.clone();
            std::thread::spawn(move || {
                let pid: i32 = client.one("SELECT pg_backend_pid()");
                // Until the run-ahead is used up: what counts is what the clock lets through.
                while Instant::now() < warm {
                    timed(&mut client, &sql);
                }
                let (begin, cpu) = (Instant::now(), cpu::nanos(pid));
                let mut issued = 0;
                while Instant::now() < until {
                    timed(&mut client, &sql);
                    issued += PIECE;
                }
                (issued as f64 / begin.elapsed().as_secs_f64(), (cpu::nanos(pid) - cpu) as f64, issued as f64)
            })
        })
        .collect();
    let results: Vec<_> = running.into_iter().map(|session| session.join().expect("a session that lasts")).collect();
    let rate = results.iter().map(|(rate, ..)| rate).sum();
    let cpu: f64 = results.iter().map(|(_, cpu, _)| cpu).sum();
    let issued: f64 = results.iter().map(|(.., issued)| issued).sum();
    (rate, cpu / issued)
}

/// Bulk INSERT into a table whose key has each as its default.
fn insert(client: &mut Client) {
    let mut samples: Vec<Sample> = RIVALS.iter().map(|_| Sample::default()).collect();
    for (n, (_, expression, kind)) in RIVALS.iter().enumerate() {
        let sql = format!(
            "DROP TABLE IF EXISTS bench_{n}; CREATE TABLE bench_{n} (id {kind} DEFAULT {expression} PRIMARY KEY, v int)"
        );
        // Two rows can share a microsecond.
        let sql = if *kind == "timestamptz" {
            sql.replace(" PRIMARY KEY", "") + &format!("; CREATE INDEX ON bench_{n} (id)")
        } else {
            sql
        };
        client.batch_execute(&sql).expect("a table can be created");
    }
    for round in 0..=rounds(INSERT_ROUNDS) {
        for (n, sample) in samples.iter_mut().enumerate() {
            client.batch_execute(&format!("TRUNCATE bench_{n}")).expect("a table can be emptied");
            let time =
                timed(client, &format!("INSERT INTO bench_{n} (v) SELECT g FROM generate_series(1, {ROWS}) AS g"));
            if round > 0 {
                sample.push(time * 1e3);
            }
        }
    }
    heading("INSERT of rows that get their key by default", &["default", "ms", "min .. max", "snowflake_nextval() is"]);
    let ours = samples[0].median();
    for ((name, ..), sample) in RIVALS.iter().zip(&samples) {
        row(&[name, &format!("{:.1}", sample.median()), &sample.spread(1), &ratio(ours, sample.median())]);
    }
    for n in 0..RIVALS.len() {
        client.batch_execute(&format!("DROP TABLE bench_{n}")).expect("a table can be dropped");
    }
}

fn ratio(ours: f64, theirs: f64) -> String {
    format!("{:.2} x", ours / theirs)
}
