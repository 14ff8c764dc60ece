//! Short transactions from many clients: `SELECT f()` and single-row INSERTs through pgbench.

use cluster::{Client, Cluster, Host};

use crate::effort::{alternate, rounds, scaled, steps};
use crate::machine::Machine;
use crate::pgbench::Pgbench;
use crate::report::{BenchReport, Figure};
use crate::rivals::{self, Rival};
use crate::server::{self, timed};

/// The number of rounds of the SELECTs, and the duration of one run in seconds. Runs are short, so that a change in the machine's other
/// load affects all rivals.
const SELECTS_OF: (usize, u64) = (15, 1);
/// The number of rounds of the INSERTs, and the duration of one run in seconds.
const INSERTS_OF: (usize, u64) = (9, 1);
/// The numbers of clients.
const CLIENTS: [usize; 4] = [1, 8, 64, 256];

/// The names and statements of the SELECTs. Snowflakes are first. The last statement needs a library that not every PostgreSQL
/// installation has.
const SELECTS: [(&str, &str); 4] = [
    ("snowflake_nextval()", "SELECT snowflake_nextval()"),
    ("clock_timestamp()", "SELECT clock_timestamp()"),
    ("constant", "SELECT 1"),
    ("empty function of a library", "SELECT oltp_nothing(1, 2)"),
];

/// The names and columns of the tables into which rows are inserted. Snowflakes are first.
const INSERTS: [(&str, &str); 4] = [
    ("snowflake", "id bigint DEFAULT snowflake_nextval() PRIMARY KEY"),
    ("bigserial", "id bigserial PRIMARY KEY"),
    // The index is not unique, because two rows can have the same microsecond.
    ("clock_timestamp(), index not unique", "id timestamptz NOT NULL DEFAULT clock_timestamp()"),
    ("constant, no index", "id bigint NOT NULL DEFAULT 1"),
];
/// The position in [`INSERTS`] of the table that gets a separate index.
const INDEXED: usize = 2;

/// A group of statements that are compared.
struct StatementGroup {
    title: &'static str,
    names: Vec<&'static str>,
    statements: Vec<String>,
    rounds: usize,
    seconds: u64,
    /// The fraction of the transactions that pgbench logs. It is 1 if there are few transactions.
    logged: f64,
}

/// Measures the transactions per second and their latencies.
pub fn run() -> BenchReport {
    let server = server::fresh("oltp").start();
    let mut client = server::session(&server);
    let keys = rivals::others(&mut client);
    let tables = tables(&keys);
    set_up(&mut client, &tables);
    let selected = if has_nothing() { &SELECTS[..] } else { &SELECTS[..SELECTS.len() - 1] };
    let mut selected: Vec<(&str, String)> = selected.iter().map(|(name, sql)| (*name, sql.to_string())).collect();
    // The SELECT of a sequence is not measured, because nobody asks for its numbers alone.
    let installed = rivals::installed(&mut client);
    selected.extend(installed.iter().map(|rival| (rival.name, format!("SELECT {}", rival.expression))));
    let selects = StatementGroup {
        title: "SELECT",
        names: selected.iter().map(|(name, _)| *name).collect(),
        statements: selected.into_iter().map(|(_, statement)| statement).collect(),
        rounds: rounds(SELECTS_OF.0),
        seconds: SELECTS_OF.1,
        logged: 0.2,
    };
    let inserts = StatementGroup {
        title: "INSERT",
        names: tables.iter().map(|(name, _)| *name).collect(),
        statements: (0..tables.len()).map(|n| format!("INSERT INTO oltp_{n} (v) VALUES (1)")).collect(),
        rounds: rounds(INSERTS_OF.0),
        seconds: INSERTS_OF.1,
        logged: 1.0,
    };
    let mut figures = measure(&server, &selects);
    figures.extend(measure(&server, &inserts));
    let notes = [
        "pgbench with prepared statements and two threads, on the processors of the server, through its Unix socket",
        "latencies are from pgbench's log of individual transactions, with quantiles for each round; pgbench reads \
         its clock only once while it serves a client, so an answer that arrives in the meantime counts as 0 µs",
        "the empty function of a library is the floor for every extension: PostgreSQL finds its built-in functions, \
         such as clock_timestamp(), without looking into the catalog cache for each execution",
        "INSERT commits one row, which is flushed to disk; the table of \"constant\" has the same columns and no \
         index, and is the floor for an INSERT",
    ];
    BenchReport {
        part: "oltp".into(),
        machine: Machine::of(&mut client),
        notes: notes.map(String::from).to_vec(),
        figures,
    }
}

/// Returns true if the contrib module btree_gist is installed. The benchmark uses its C function for the distance of two integers
/// as a function that does nothing.
fn has_nothing() -> bool {
    Host::get().installation().libraries.join("btree_gist.so").exists()
}

/// Returns the names and columns of the tables into which rows are inserted.
fn tables(keys: &[Rival]) -> Vec<(&'static str, String)> {
    let others = keys.iter().map(|key| (key.name, format!("id {}", key.column())));
    INSERTS.iter().map(|(name, id)| (*name, id.to_string())).chain(others).collect()
}

fn set_up(client: &mut Client, tables: &[(&str, String)]) {
    if has_nothing() {
        // A STABLE function would be computed only once for each plan.
        timed(
            client,
            "CREATE FUNCTION oltp_nothing(int, int) RETURNS int VOLATILE STRICT LANGUAGE c AS '$libdir/btree_gist', 'int4_dist'",
        );
    }
    for (n, (_, id)) in tables.iter().enumerate() {
        timed(client, &format!("CREATE TABLE oltp_{n} ({id}, v bigint NOT NULL)"));
    }
    timed(client, &format!("CREATE INDEX ON oltp_{INDEXED} (id)"));
}

fn measure(server: &Cluster, group: &StatementGroup) -> Vec<Figure> {
    let pgbench = Pgbench::new(server);
    let seconds = scaled(group.seconds);
    let mut figures = Vec::new();
    for clients in steps(&CLIENTS) {
        println!("==> pgbench, {}, {clients} clients, {} rounds", group.title, group.rounds);
        timed(&mut server.connect(), "CHECKPOINT");
        let measured = alternate(group.rounds, group.statements.len(), |n| {
            let outcome = pgbench.run(&group.statements[n], *clients, seconds, group.logged);
            let latency = |part| outcome.latencies.quantile(part);
            [outcome.tps, latency(0.5), latency(0.95), latency(0.99)]
        });
        let kinds = [("transactions", "per s"), ("p50", "µs"), ("p95", "µs"), ("p99", "µs")];
        for ((kind, unit), samples) in kinds.iter().zip(&measured) {
            let name = format!("{}, {kind}", group.title);
            let figure = Figure::new(&name, unit, &format!("{seconds} s"), &group.names, samples);
            figures.push(figure.at("clients", *clients as u64));
        }
    }
    figures
}
