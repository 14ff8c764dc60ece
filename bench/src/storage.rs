//! The cost of a key for its table: the time and WAL of INSERTs, the size of the index, and lookups of rows.

use cluster::{Answer, Client};

use crate::effort::{alternate, rounds, scaled};
use crate::lookups;
use crate::machine::Machine;
use crate::report::{BenchReport, Figure, group};
use crate::rivals::{self, Key, names};
use crate::server::{self, timed};
use crate::stats::Sample;

/// The number of rounds of the bulk INSERT.
const BULK_ROUNDS: usize = 9;
/// The number of rows in the bulk INSERT, and in each step of the load.
const MILLION: u64 = 1_000_000;
/// The number of steps of the load.
const MILLIONS: u64 = 10;
/// The number of pieces of a step. After each piece, it is the next table's turn.
const PIECES: usize = 10;
/// The name of the axis for figures that are measured while the tables grow.
const AXIS: &str = "million rows";

/// Fills tables that differ in their key, and looks up rows in these tables.
pub fn run() -> BenchReport {
    let server = server::fresh("storage").start();
    let mut client = server::session(&server);
    let keys = rivals::keys(&mut client);
    let mut figures = vec![bulk(&mut client, &keys)];
    figures.extend(load(&mut client, &keys));
    figures.extend(lookups::run(&mut client, &keys));
    let notes = [
        "the bulk INSERT is one statement into an empty table of two columns, after a CHECKPOINT",
        "the load fills tables with a key, created_at and a note of 32 characters, in statements of 100,000 rows, \
         with the tables in turn; a CHECKPOINT before each million rows makes the first change of every page write a \
         full-page image",
        "lookups: row by row through the index, after VACUUM ANALYZE, with all tables in the system's cache; a range \
         of UUIDv4 keys is not a range of time, so an index on created_at, which is built after the load, is used \
         instead",
    ];
    BenchReport {
        part: "storage".into(),
        machine: Machine::of(&mut client),
        notes: notes.map(String::from).to_vec(),
        figures,
    }
}

/// Measures one INSERT .. SELECT into an empty table.
fn bulk(client: &mut Client, keys: &[Key]) -> Figure {
    let rounds = rounds(BULK_ROUNDS);
    let rows = scaled(MILLION);
    println!("==> bulk INSERT of {} rows, {rounds} rounds", group(rows));
    for (n, key) in keys.iter().enumerate() {
        run_sql(client, &format!("CREATE TABLE bulk_{n} (id {}, v bigint NOT NULL)", key.column));
    }
    let [seconds] = alternate(rounds, keys.len(), |n| {
        // There are two steps, because the statements of a batch share a transaction, and a CHECKPOINT cannot be part of a
        // transaction.
        run_sql(client, &format!("TRUNCATE bulk_{n}"));
        run_sql(client, "CHECKPOINT");
        [timed(client, &format!("INSERT INTO bulk_{n} (v) SELECT g FROM generate_series(1, {rows}) AS g"))]
    });
    for n in 0..keys.len() {
        run_sql(client, &format!("DROP TABLE bulk_{n}"));
    }
    Figure::new("bulk INSERT into an empty table", "s", &format!("{} rows", group(rows)), &names(keys), &seconds)
}

/// Loads ten million rows. Measures the time and the WAL for each million rows, and the size of the index after the first million
/// and the last million.
fn load(client: &mut Client, keys: &[Key]) -> Vec<Figure> {
    for (n, key) in keys.iter().enumerate() {
        run_sql(
            client,
            &format!(
                "CREATE TABLE load_{n} (id {}, created_at timestamptz NOT NULL DEFAULT clock_timestamp(), note text)",
                key.column
            ),
        );
    }
    let rows = scaled(MILLION);
    let piece = rows / PIECES as u64;
    let (mut times, mut logs, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
    for million in 1..=MILLIONS {
        println!("==> load of {} rows: up to {}", group(rows * MILLIONS), group(rows * million));
        run_sql(client, "CHECKPOINT");
        let mut seconds = vec![Sample::default(); keys.len()];
        let mut logged = vec![0; keys.len()];
        for round in 0..PIECES {
            for turn in 0..keys.len() {
                let n = (turn + round) % keys.len();
                let sql =
                    format!("INSERT INTO load_{n} (note) SELECT md5(g::text) FROM generate_series(1, {piece}) AS g");
                let begin = written(client);
                seconds[n].push(timed(client, &sql) * 1e3);
                logged[n] += written(client) - begin;
            }
        }
        let names = names(keys);
        let turn = format!("{} rows", group(piece));
        times.push(Figure::new("INSERT into a growing table", "ms", &turn, &names, &seconds).at(AXIS, million));
        let logged = per_row(&logged, rows);
        let turn = format!("{} rows", group(rows));
        logs.push(Figure::new("WAL of INSERTs", "bytes a row", &turn, &names, &logged).at(AXIS, million));
        if [1, MILLIONS].contains(&million) {
            let rows = rows * million;
            let turn = format!("{} rows", group(rows));
            let size = |n| client.one::<i64>(&format!("SELECT pg_relation_size('load_{n}_pkey')"));
            let bytes: Vec<i64> = (0..keys.len()).map(size).collect();
            let figure = Figure::new("index of the primary key", "bytes a row", &turn, &names, &per_row(&bytes, rows));
            sizes.push(figure.at(AXIS, million));
        }
    }
    times.into_iter().chain(logs).chain(sizes).collect()
}

/// Returns the current position in WAL, in bytes.
pub fn written(client: &mut Client) -> i64 {
    client.one("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint")
}

fn per_row(bytes: &[i64], rows: u64) -> Vec<Sample> {
    bytes.iter().map(|bytes| Sample::from_iter([*bytes as f64 / rows as f64])).collect()
}

fn run_sql(client: &mut Client, sql: &str) {
    timed(client, sql);
}
