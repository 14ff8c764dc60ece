//! Serials of this extension, and the counter row that applications write in PL/pgSQL.

use cluster::{Client, Cluster};

use crate::effort::{alternate, rounds, scaled, steps};
use crate::machine::Machine;
use crate::pgbench::Pgbench;
use crate::report::{BenchReport, Figure};
use crate::segments_server;
use crate::server::{self, timed};

/// The number of rounds, and the duration of one run in seconds.
const ROUNDS: usize = 7;
const SECONDS: u64 = 1;
/// The numbers of clients.
const CLIENTS: [usize; 3] = [1, 8, 32];
/// Other work of a transaction: it holds no lock and uses no processor.
const OTHER_WORK: &str = "SELECT pg_sleep(0.005)";

/// The name of a rival, and its table.
const RIVALS: [(&str, &str); 4] = [
    ("snowflake_serial(), gapless", "invoices_gapless"),
    ("snowflake_number_at_commit(), gapless", "invoices_at_commit"),
    ("PL/pgSQL, counter row", "invoices_counter"),
    ("snowflake_serial(), dense", "invoices_dense"),
];
/// The calls that are compared within one session, and the number of calls of a turn. A transaction with more numbers of one counter
/// takes longer for each of them.
const CALLS: [(&str, &str); 4] = [
    ("snowflake_serial(), gapless", "snowflake_serial('early')"),
    ("PL/pgSQL, counter row", "next_number()"),
    ("snowflake_serial(), dense", "snowflake_serial('shared')"),
    (
        "nextval, CACHE 1, with format()",
        "format('INV-%s-%s', to_char(now() AT TIME ZONE 'UTC', 'YYYYMM'), to_char(nextval('segments_1'), 'FM000000000'))",
    ),
];
const BURST: u64 = 500;
const CALL_ROUNDS: usize = 15;
/// The rivals whose numbers have no gaps.
const GAPLESS: usize = 3;

/// Everything that the rivals need. Both kinds of counter rows have one row for each month.
const SET_UP: &str = r#"
    CREATE TABLE invoices_gapless (number text NOT NULL, amount bigint NOT NULL);
    CREATE TABLE invoices_at_commit (number text, amount bigint NOT NULL);
    CREATE TABLE invoices_counter (number text NOT NULL, amount bigint NOT NULL);
    CREATE TABLE invoices_dense (number text NOT NULL, amount bigint NOT NULL);
    SELECT snowflake_create_series('early', 'INV-{YYYY}{MM}-{n:9}', time_zone => 'UTC');
    SELECT snowflake_create_series('late', 'INV-{YYYY}{MM}-{n:9}', time_zone => 'UTC');
    SELECT snowflake_create_series('shared', 'INV-{YYYY}{MM}-{n:9}', kind => 'dense', time_zone => 'UTC');
    ALTER TABLE invoices_dense ALTER number SET DEFAULT snowflake_serial('shared');
    ALTER TABLE invoices_gapless ALTER number SET DEFAULT snowflake_serial('early');
    SELECT snowflake_number_at_commit('invoices_at_commit', 'number', 'late');

    CREATE TABLE counter (period text PRIMARY KEY, last_number bigint NOT NULL);
    CREATE FUNCTION next_number() RETURNS text LANGUAGE plpgsql AS $$
    DECLARE
        month text := to_char(now() AT TIME ZONE 'UTC', 'YYYYMM');
        number bigint;
    BEGIN
        INSERT INTO counter VALUES (month, 1)
            ON CONFLICT (period) DO UPDATE SET last_number = counter.last_number + 1
            RETURNING last_number INTO number;
        RETURN format('INV-%s-%s', month, lpad(number::text, 9, '0'));
    END
    $$;
    ALTER TABLE invoices_counter ALTER number SET DEFAULT next_number();
"#;

/// Measures transactions that insert one row with a number.
pub fn run() -> BenchReport {
    let server = segments_server::start("serials", server::fresh);
    let mut client = server::session(&server);
    timed(&mut client, SET_UP);
    let mut figures = measure(&server, &mut client, "INSERT", |insert| insert);
    figures.push(one_session(&mut client));
    figures.extend(measure(&server, &mut client, "INSERT and 5 ms of other work", |insert| {
        format!("BEGIN;\n{insert};\n{OTHER_WORK};\nCOMMIT")
    }));
    let notes = [
        "pgbench with prepared statements and two threads, on the processors of the server, through its Unix socket",
        "each transaction inserts one row and is flushed to disk; all clients take numbers of the same series and \
         month",
        "the counter row is `INSERT .. ON CONFLICT .. DO UPDATE .. RETURNING` in a PL/pgSQL function, as the column default",
        "other work is `pg_sleep(0.005)` after the INSERT: a number from the column default keeps its counter locked \
         during this work, and a number that is assigned at COMMIT does not",
        "dense: the registry is in the server's own database; transactions with dense serials do not wait for each \
         other, and all others do",
        "the cost of a call is the time of `SELECT count(f()) FROM generate_series(..)` minus the time of the same \
         query with a constant, in one session, whose transaction is rolled back",
        "before each run, the counters are vacuumed; after all runs, each table is checked for duplicates and, \
         unless it is dense, for gaps",
    ];
    for (n, (name, table)) in RIVALS.iter().enumerate() {
        check(&mut client, name, table, n < GAPLESS);
    }
    BenchReport {
        part: "serials".into(),
        machine: Machine::of(&mut client),
        notes: notes.map(String::from).to_vec(),
        figures,
    }
}

fn one_session(client: &mut Client) -> Figure {
    let (name, rounds) = ("cost of a serial, one call a row", rounds(CALL_ROUNDS));
    println!("==> {name}, {rounds} rounds");
    let sql = |expression: &str| format!("SELECT count({expression}) FROM generate_series(1, {BURST})");
    let [micros] = alternate(rounds, CALLS.len(), |n| {
        timed(client, "VACUUM early, late, counter");
        // The transaction is rolled back, because the number would be a gap in the table.
        timed(client, "BEGIN");
        let difference = timed(client, &sql(CALLS[n].1)) - timed(client, &sql("1"));
        timed(client, "ROLLBACK");
        [difference * 1e6 / BURST as f64]
    });
    Figure::new(name, "µs", &format!("{BURST} calls"), &CALLS.map(|(name, _)| name), &micros)
}

fn measure(server: &Cluster, client: &mut Client, title: &str, transaction: impl Fn(String) -> String) -> Vec<Figure> {
    let pgbench = Pgbench::new(server);
    let seconds = scaled(SECONDS);
    let names = RIVALS.map(|(name, _)| name);
    let mut figures = Vec::new();
    for clients in steps(&CLIENTS) {
        let rounds = rounds(ROUNDS);
        println!("==> serials, {title}, {clients} clients, {rounds} rounds");
        timed(client, "CHECKPOINT");
        let measured = alternate(rounds, RIVALS.len(), |n| {
            timed(client, "VACUUM early, late, counter");
            let statement = transaction(format!("INSERT INTO {} (amount) VALUES (1)", RIVALS[n].1));
            let outcome = pgbench.run(&statement, *clients, seconds, 1.0);
            [outcome.tps, outcome.latencies.quantile(0.5), outcome.latencies.quantile(0.99)]
        });
        for ((kind, unit), samples) in [("transactions", "per s"), ("p50", "µs"), ("p99", "µs")].iter().zip(&measured)
        {
            let figure = Figure::new(&format!("{title}, {kind}"), unit, &format!("{seconds} s"), &names, samples);
            figures.push(figure.at("clients", *clients as u64));
        }
    }
    figures
}

/// Panics if a table has a number more than once or, unless it may, lacks one. A figure of numbers with gaps would compare different
/// things.
fn check(client: &mut Client, name: &str, table: &str, gapless: bool) {
    let counted = format!(
        "SELECT count(*), count(DISTINCT number), max(right(number, 9)::bigint), min(right(number, 9)::bigint)
         FROM {table} GROUP BY left(number, 10)"
    );
    for row in client.query(&counted, &[]).expect("the table can be read") {
        let [rows, different, last, first] = [0, 1, 2, 3].map(|n| row.get::<_, i64>(n));
        assert!(
            rows == different && (!gapless || rows == last && first == 1),
            "{name}: {rows} rows, {different} numbers, {first} to {last}"
        );
    }
}
