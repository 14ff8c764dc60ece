//! Lookups of rows by key and by time, in the tables that [`crate::storage`] has filled.

use cluster::{Answer, Client};

use crate::effort::{alternate, rounds, scaled};
use crate::report::{Figure, group};
use crate::rivals::{Key, names};
use crate::server::timed;
use crate::stats::Sample;

/// The number of rounds of all lookups.
const ROUNDS: usize = 9;
/// The number of keys that are looked up in one turn.
const POINTS: u64 = 100_000;
/// The number of ranges that are fetched in one turn.
const RANGES: u64 = 200;
/// The number of rows in a range.
const RANGE: u64 = 1_000;

/// A way to find a range of rows.
struct Path {
    name: String,
    table: usize,
    column: &'static str,
}

/// Looks up rows in `load_0` and the following tables. There is one table for each key. The rows are chosen at random, once for
/// all rounds.
pub fn run(client: &mut Client, keys: &[Key]) -> Vec<Figure> {
    println!("==> lookups, {} rounds", rounds(ROUNDS));
    let unordered = keys.iter().position(|key| key.name == "UUIDv4").expect("UUIDv4 is always compared");
    timed(client, &format!("CREATE INDEX load_created_at ON load_{unordered} (created_at)"));
    // Each row is looked up separately through its index, as an application looks it up.
    timed(
        client,
        "SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_bitmapscan = off; SET enable_memoize = off",
    );
    for n in 0..keys.len() {
        timed(client, &format!("VACUUM ANALYZE load_{n}"));
        draw(client, n);
    }
    timed(client, "CHECKPOINT");
    let mut figures = vec![index_sizes(client, keys, unordered), points(client, keys)];
    figures.extend(ranges(client, &paths(keys, unordered)));
    figures
}

/// Creates the table `drawn_n` with the rows to look up.
fn draw(client: &mut Client, n: usize) {
    let rows: f64 = client.one(&format!("SELECT reltuples::float8 FROM pg_class WHERE relname = 'load_{n}'"));
    let points = scaled(POINTS);
    let percent = (100.0 * 1.2 * points as f64 / rows).min(100.0);
    timed(
        client,
        &format!(
            "CREATE TEMP TABLE drawn_{n} AS
             SELECT *, row_number() OVER () AS n, 0 AS zero FROM
             (SELECT id, created_at FROM load_{n} TABLESAMPLE BERNOULLI ({percent}) ORDER BY random() LIMIT {points}) AS row"
        ),
    );
    timed(client, &format!("ANALYZE drawn_{n}"));
}

fn index_sizes(client: &mut Client, keys: &[Key], unordered: usize) -> Figure {
    let sizes: Vec<Sample> = (0..keys.len())
        .map(|n| {
            let sql = format!("SELECT pg_indexes_size('load_{n}')::float8 / (SELECT count(*) FROM load_{n})");
            Sample::from_iter([client.one::<f64>(&sql)])
        })
        .collect();
    let mut names = names(keys);
    names[unordered] = "UUIDv4 + created_at";
    let rows: i64 = client.one("SELECT count(*) FROM load_0");
    let turn = format!("{} rows", group(rows.unsigned_abs()));
    Figure::new("all indexes that finding rows by key and by time takes", "bytes a row", &turn, &names, &sizes)
}

fn points(client: &mut Client, keys: &[Key]) -> Figure {
    let found: i64 = client.one("SELECT count(*) FROM drawn_0");
    let [micros] = alternate(rounds(ROUNDS), keys.len(), |n| {
        let sql = format!("SELECT count(row.note) FROM drawn_{n} AS drawn JOIN load_{n} AS row ON row.id = drawn.id");
        [timed(client, &sql) * 1e6 / found as f64]
    });
    let turn = format!("{} rows", group(found.unsigned_abs()));
    Figure::new("lookup of a row by its key, within a join", "µs", &turn, &names(keys), &micros)
}

/// Returns the ways to find the rows of a range of time, for each key.
fn paths(keys: &[Key], unordered: usize) -> Vec<Path> {
    let mut paths: Vec<_> = keys
        .iter()
        .enumerate()
        .filter(|(table, _)| *table != unordered)
        .map(|(table, key)| Path { name: format!("{}, by key", key.name), table, column: "id" })
        .collect();
    paths.push(Path { name: "UUIDv4, by an index on created_at".into(), table: unordered, column: "created_at" });
    // These rows do not belong to one range of time. They show the cost of reading the table in the order of the key.
    paths.push(Path { name: "UUIDv4, by key (any rows)".into(), table: unordered, column: "id" });
    paths
}

fn ranges(client: &mut Client, paths: &[Path]) -> [Figure; 2] {
    let ranges = scaled(RANGES);
    // The column `zero` prevents the planner from fetching the same rows only once.
    let [random, latest] = alternate(rounds(ROUNDS), paths.len(), |n| {
        let Path { table, column, .. } = paths[n];
        let mut fetch = |condition: &str, direction: &str| {
            let sql = format!(
                "SELECT count(row.note) FROM drawn_{table} AS drawn, LATERAL
                 (SELECT note FROM load_{table} AS row {condition} ORDER BY row.{column} {direction}
                  LIMIT {RANGE} OFFSET drawn.zero) AS row
                 WHERE drawn.n <= {ranges}"
            );
            timed(client, &sql) * 1e6 / ranges as f64
        };
        [fetch(&format!("WHERE row.{column} >= drawn.{column}"), "ASC"), fetch("", "DESC")]
    });
    let names: Vec<_> = paths.iter().map(|path| path.name.as_str()).collect();
    let turn = format!("{ranges} ranges of {} rows", group(RANGE));
    [
        Figure::new("fetch of 1,000 rows that follow a random one", "µs", &turn, &names, &random),
        Figure::new("fetch of the latest 1,000 rows", "µs", &turn, &names, &latest),
    ]
}
