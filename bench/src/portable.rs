//! The portable functions on a server without the library, beside what can be had there: a function over a sequence and the clock as it is
//! usually written by hand, UUIDs of version 7 in SQL, and bigserial.

use std::sync::Barrier;
use std::time::Instant;

use cluster::{Client, Cluster, Scratch, command, output, repository};

use crate::effort::{alternate, rounds, scaled};
use crate::machine::Machine;
use crate::report::{BenchReport, Figure, group};
use crate::server::{self, timed};

/// The number of rounds.
const ROUNDS: usize = 15;
/// The number of IDs of a statement in which only the ID costs something.
const IDS: u64 = 300_000;
/// The number of rows of the large INSERT.
const ROWS: u64 = 1_000_000;
/// The number of sessions that insert single rows, and how many rows each of them inserts.
const SESSIONS: usize = 8;
const SINGLE_ROWS: u64 = 1_000;

/// The number of rows of a statement with several rows, and how many statements there are in a turn.
const FEW: usize = 100;
const STATEMENTS: u64 = 1_000;

/// The names and defaults of the rivals, ours first.
const RIVALS: [(&str, &str); 4] = [
    ("portable snowflake_nextval()", "bigint DEFAULT snowflake_nextval()"),
    ("bigserial", "bigint DEFAULT nextval('portable_serial')"),
    ("PL/pgSQL snowflake by hand", "bigint DEFAULT portable_by_hand()"),
    ("UUIDv7 in SQL", "uuid DEFAULT portable_uuid()"),
];

const SETUP: &str = "
CREATE SEQUENCE portable_serial;
CREATE SEQUENCE portable_hand;
CREATE FUNCTION portable_by_hand() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    ms bigint;
    seq bigint;
BEGIN
    SELECT nextval('portable_hand') % 4096 INTO seq;
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO ms;
    RETURN (ms - 1288834974657) << 22 | 7 << 12 | seq;
END $$;
CREATE FUNCTION portable_uuid() RETURNS uuid LANGUAGE sql AS $$
    SELECT encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid()) PLACING
        substring(int8send((extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3) FROM 1 FOR 6), 52, 1), 53, 1), 'hex')::uuid
$$;
SELECT snowflake_configure(7);";

/// Measures one session that draws, one that inserts many rows, and several that insert single rows.
pub fn run() -> BenchReport {
    let server = server::fresh("portable").unset("shared_preload_libraries").start();
    let mut client = session(&server);
    let scripts = Scratch::new("bench_portable.scripts");
    output(command(repository().join("scripts/portable")).arg(&scripts.0));
    let script = std::fs::read_to_string(scripts.0.join("snowflake_portable.sql")).expect("it was just written");
    client.batch_execute(&script).expect("the script runs");
    client.batch_execute(SETUP).expect("the rivals can be set up");
    for (n, (_, column)) in RIVALS.iter().enumerate() {
        let table = format!("CREATE TABLE portable_{n} (id {column} PRIMARY KEY, v int)");
        client.batch_execute(&table).expect("a table");
    }
    let figures = vec![
        cost(&mut client),
        many_rows(&mut client, "one INSERT of many rows", |n, rows| {
            format!("INSERT INTO portable_{n} (v) SELECT 1 FROM generate_series(1, {rows})")
        }),
        many_rows(&mut client, "COPY of many rows", |n, rows| {
            format!("COPY portable_{n} (v) FROM PROGRAM 'seq {rows}'")
        }),
        few_rows(&mut client),
        single_rows(&server, &mut client),
    ];
    let notes = [
        "the server does not load the library".into(),
        "cost: `SELECT count(f()) FROM generate_series(..)` less the same with a constant".into(),
        format!("INSERTs of a few rows: one session, each statement with {FEW} rows a transaction, prepared once"),
        format!("rows per second: {SESSIONS} sessions with single-row INSERTs, each a transaction"),
    ];
    BenchReport { part: "portable".into(), machine: Machine::of(&mut client), notes: notes.to_vec(), figures }
}

/// Opens a connection. Plans contain only what is measured.
fn session(server: &Cluster) -> Client {
    let mut client = server.connect();
    client.batch_execute("SET jit = off; SET work_mem = '256MB'").expect("a session may set these");
    client
}

fn names() -> Vec<&'static str> {
    RIVALS.map(|(name, _)| name).to_vec()
}

fn cost(client: &mut Client) -> Figure {
    let (ids, rounds) = (scaled(IDS), rounds(ROUNDS));
    println!("==> cost of a portable ID, {rounds} rounds");
    let sql = |expression: &str| format!("SELECT count({expression}) FROM generate_series(1, {ids})");
    let [nanos] = alternate(rounds, RIVALS.len(), |n| {
        let (_, expression) = RIVALS[n].1.split_once("DEFAULT ").expect("a default");
        [(timed(client, &sql(expression)) - timed(client, &sql("1"))) * 1e9 / ids as f64]
    });
    Figure::new("cost of an ID, one call a row", "ns", &format!("{} calls", group(ids)), &names(), &nanos)
}

/// Measures a statement that inserts many rows into an empty table.
fn many_rows(client: &mut Client, name: &str, statement: impl Fn(usize, u64) -> String) -> Figure {
    let (rows, rounds) = (scaled(ROWS), rounds(ROUNDS));
    println!("==> {name}, {} rows, {rounds} rounds", group(rows));
    let [seconds] = alternate(rounds, RIVALS.len(), |n| {
        timed(client, &format!("TRUNCATE portable_{n}; CHECKPOINT"));
        [timed(client, &statement(n, rows))]
    });
    Figure::new(name, "s", &format!("{} rows", group(rows)), &names(), &seconds)
}

/// Measures statements that insert a few rows each.
fn few_rows(client: &mut Client) -> Figure {
    let (statements, rounds) = (scaled(STATEMENTS), rounds(ROUNDS));
    println!("==> INSERTs of {FEW} rows, {rounds} rounds");
    let values = vec!["(1)"; FEW].join(", ");
    let prepared = RIVALS
        .iter()
        .enumerate()
        .map(|(n, _)| client.prepare(&format!("INSERT INTO portable_{n} (v) VALUES {values}")).expect("a statement"));
    let prepared: Vec<_> = prepared.collect();
    let [rates] = alternate(rounds, RIVALS.len(), |n| {
        timed(client, &format!("TRUNCATE portable_{n}; CHECKPOINT"));
        let begin = Instant::now();
        (0..statements).for_each(|_| _ = client.execute(&prepared[n], &[]).expect("rows"));
        [(statements * FEW as u64) as f64 / begin.elapsed().as_secs_f64()]
    });
    let turn = format!("{} rows", group(statements * FEW as u64));
    Figure::new(&format!("rows of INSERTs of {FEW} rows"), "per s", &turn, &names(), &rates)
}

fn single_rows(server: &Cluster, client: &mut Client) -> Figure {
    let (rows, rounds) = (scaled(SINGLE_ROWS), rounds(ROUNDS));
    println!("==> {SESSIONS} sessions insert single rows, {rounds} rounds");
    let mut sessions: Vec<Client> = (0..SESSIONS).map(|_| session(server)).collect();
    let [rates] = alternate(rounds, RIVALS.len(), |n| {
        timed(client, &format!("TRUNCATE portable_{n}; CHECKPOINT"));
        let insert = format!("INSERT INTO portable_{n} (v) VALUES (1)");
        let barrier = Barrier::new(SESSIONS + 1);
        let begin = std::thread::scope(|scope| {
            for session in &mut sessions {
                scope.spawn(|| {
                    let statement = session.prepare(&insert).expect("a statement");
                    barrier.wait();
                    (0..rows).for_each(|_| _ = session.execute(&statement, &[]).expect("a row"));
                });
            }
            barrier.wait();
            Instant::now()
        });
        [(rows * SESSIONS as u64) as f64 / begin.elapsed().as_secs_f64()]
    });
    let turn = format!("{} rows", group(rows * SESSIONS as u64));
    Figure::new("rows of 8 sessions", "per s", &turn, &names(), &rates)
}
