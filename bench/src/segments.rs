//! Dense numbers of a segment compared with sequences and snowflakes: one session, many sessions, INSERTs, and what a crash loses.
//! Requests over TCP are in [`crate::segments_wire`].

use cluster::{Answer, Client, Cluster, Stop};

use crate::effort::{alternate, rounds, scaled, steps};
use crate::machine::Machine;
use crate::pgbench::Pgbench;
use crate::report::{BenchReport, Figure, group};
use crate::rivals;
use crate::server::{self, timed};
use crate::sessions::{AXIS, Sessions};
use crate::stats::Sample;
use crate::{segments_server, segments_wire};

/// The numbers of rounds: of one session, of many sessions, of INSERTs, and of crashes.
const ROUNDS: [usize; 4] = [15, 7, 7, 5];
/// The number of calls of one session in a turn.
const CALLS: u64 = 200_000;
/// The number of calls of all sessions together in a turn, and in one statement.
const TOGETHER: u64 = 4_000_000;
const PIECE: u64 = 20_000;
/// The numbers of sessions, and the index of the number with which the others are compared.
const SESSIONS: [usize; 4] = [1, 2, 8, 64];
const REFERENCE: usize = 1;
/// The numbers of clients that insert rows, and the duration of one run in seconds.
const CLIENTS: [usize; 3] = [1, 8, 64];
const SECONDS: u64 = 1;
/// The number of sessions before a crash, and the number of calls of each.
const CRASHING: usize = 8;
const BEFORE_A_CRASH: u64 = 10_000;

/// The names and expressions that are compared, beside those of [`rivals::others`].
type NamedExpression = (&'static str, &'static str);
const RIVALS: [NamedExpression; 5] = [
    ("snowflake_segment_nextval()", "snowflake_segment_nextval('bench')"),
    ("nextval, CACHE 1", "nextval('segments_1')"),
    ("nextval, CACHE 32", "nextval('segments_32')"),
    ("nextval, CACHE 1000", "nextval('segments_1000')"),
    ("snowflake_nextval()", "snowflake_nextval()"),
];
/// The rivals whose numbers are dense, so that a crash makes holes.
const DENSE: usize = 4;

/// Measures segments.
pub fn run() -> BenchReport {
    let mut server = segments_server::start("segments", server::unthrottled);
    let mut client = server::session(&server);
    let machine = Machine::of(&mut client);
    let others = rivals::others(&mut client);
    let mut all = RIVALS.to_vec();
    all.extend(others.iter().map(|rival| (rival.name, rival.expression)));
    let mut figures = vec![
        one_session(&mut client, &all, 1, "cost of a number, one call a row"),
        one_session(&mut client, &all, 10, "cost of a number, ten calls a row"),
    ];
    figures.extend(in_bulk(&server, &all));
    let mut keys: Vec<_> = RIVALS.iter().map(|(name, expression)| (*name, defaulted(expression))).collect();
    keys.extend(others.iter().map(|rival| (rival.name, rival.column())));
    figures.extend(inserts(&server, &mut client, &keys));
    drop(client);
    figures.push(crashes(&mut server));
    drop(server);
    figures.extend(segments_wire::run());
    let notes = [
        "the registry is in the server's own database; the `step` is 10,000,000 numbers, and 1,000 for the crash",
        "the cost of a call is the time of `SELECT count(f()) FROM generate_series(..)` minus the time of the same \
         query with a constant, in one session",
        "in bulk: every session repeats `SELECT count(f()) FROM generate_series(..)` with about 20,000 rows, and the \
         total number of calls is the same for any number of sessions; the time ends when the last session ends; the \
         layout for snowflakes is 40:1:22",
        "INSERT: pgbench with prepared statements and two threads, through a Unix socket; each transaction is flushed to disk",
        "crash: 8 sessions draw 10,000 numbers each and commit, the server is stopped as in a crash, and recovers; \
         the lost numbers are those below the next number that no session got",
        "over TCP: pgbench with 64 clients and the simple query protocol, one number per request, directly and \
         through PgBouncer in transaction mode, all on the processors of the server",
    ];
    BenchReport { part: "segments".into(), machine, notes: notes.map(String::from).to_vec(), figures }
}

fn one_session(client: &mut Client, rivals: &[NamedExpression], calls: u64, name: &str) -> Figure {
    let (rounds, burst) = (rounds(ROUNDS[0]), scaled(CALLS));
    println!("==> {name}, {rounds} rounds");
    let sql = |expression: &str| {
        let columns = vec![format!("count({expression})"); calls as usize].join(", ");
        format!("SELECT {columns} FROM generate_series(1, {})", (burst / calls).max(1))
    };
    let [nanos] = alternate(rounds, rivals.len(), |n| {
        let difference = timed(client, &sql(rivals[n].1)) - timed(client, &sql("1"));
        [difference * 1e9 / burst as f64]
    });
    Figure::new(name, "ns", &format!("{} calls", group(burst)), &names(rivals), &nanos)
}

fn in_bulk(server: &Cluster, rivals: &[NamedExpression]) -> Vec<Figure> {
    let (counts, rounds) = (steps(&SESSIONS), rounds(ROUNDS[1]));
    println!("==> numbers in bulk, {rounds} rounds of {} numbers of sessions", counts.len());
    let mut pool = Sessions::open(server, *counts.last().expect("numbers of sessions"));
    let [rates] = alternate(rounds, counts.len() * rivals.len(), |n| {
        let (sessions, (_, expression)) = (counts[n / rivals.len()], rivals[n % rivals.len()]);
        let each = scaled(TOGETHER) / sessions as u64;
        let pieces = (each / PIECE).max(1);
        let work = format!("SELECT count({expression}) FROM generate_series(1, {})", (each / pieces).max(1));
        let draw = |client: &mut Client| (0..pieces).for_each(|_| _ = timed(client, &work));
        let (run, _) = pool.at_once(sessions, |client| _ = timed(client, &work), draw);
        [((each / pieces).max(1) * pieces * sessions as u64) as f64 / run.seconds]
    });
    let turn = format!("{} calls", group(scaled(TOGETHER)));
    let reference = &rates[REFERENCE * rivals.len()..][..rivals.len()];
    let relative: Vec<_> = rates.iter().enumerate().map(|(n, rate)| rate.over(&reference[n % rivals.len()])).collect();
    let relative_name = format!("numbers in bulk, relative to {} sessions", counts[REFERENCE]);
    let along = |name: &str, unit: &str, samples: &[Sample]| -> Vec<Figure> {
        let chunks = samples.chunks(rivals.len()).zip(counts);
        chunks.map(|(chunk, n)| Figure::new(name, unit, &turn, &names(rivals), chunk).at(AXIS, *n as u64)).collect()
    };
    let mut figures = along("numbers in bulk", "per s", &rates);
    figures.extend(along(&relative_name, "x", &relative).into_iter().skip(REFERENCE + 1));
    figures
}

/// Returns the definition of a primary key column with this default.
fn defaulted(expression: &str) -> String {
    format!("bigint DEFAULT {expression} PRIMARY KEY")
}

fn inserts(server: &Cluster, client: &mut Client, keys: &[(&str, String)]) -> Vec<Figure> {
    let (rounds, seconds) = (rounds(ROUNDS[2]), scaled(SECONDS));
    for (n, (_, column)) in keys.iter().enumerate() {
        timed(client, &format!("CREATE TABLE segments_rows_{n} (id {column}, v bigint NOT NULL)"));
    }
    let names: Vec<_> = keys.iter().map(|(name, _)| *name).collect();
    let pgbench = Pgbench::new(server);
    let mut figures = Vec::new();
    for clients in steps(&CLIENTS) {
        println!("==> INSERT, {clients} clients, {rounds} rounds");
        timed(client, "CHECKPOINT");
        let measured = alternate(rounds, keys.len(), |n| {
            let outcome = pgbench.run(&format!("INSERT INTO segments_rows_{n} (v) VALUES (1)"), *clients, seconds, 1.0);
            [outcome.tps, outcome.latencies.quantile(0.99)]
        });
        for ((kind, unit), samples) in [("transactions", "per s"), ("p99", "µs")].iter().zip(&measured) {
            let figure = Figure::new(&format!("INSERT, {kind}"), unit, &format!("{seconds} s"), &names, samples);
            figures.push(figure.at("clients", *clients as u64));
        }
    }
    figures
}

/// Counts the numbers that nobody gets because of a crash.
fn crashes(server: &mut Cluster) -> Figure {
    let rounds = rounds(ROUNDS[3]);
    println!("==> holes after a crash, {rounds} rounds");
    let calls = scaled(BEFORE_A_CRASH);
    let [holes] = alternate(rounds, DENSE, |n| {
        let expression = RIVALS[n].1.replace("'bench'", "'crash'");
        let drawn =
            format!("CREATE TEMP TABLE drawn AS SELECT {expression} AS number FROM generate_series(1, {calls})");
        let mut clients: Vec<_> = (0..CRASHING).map(|_| server.connect()).collect();
        let mut first = i64::MAX;
        for client in &mut clients {
            timed(client, &drawn);
            // The transaction is committed and flushed, so what was drawn is not lost itself.
            timed(client, "CREATE TABLE flushed (); DROP TABLE flushed");
            first = first.min(client.one("SELECT min(number) FROM drawn"));
        }
        drop(clients);
        server.stop(Stop::Immediate);
        server.start();
        let next: i64 = server.connect().one(&format!("SELECT {expression}"));
        [(next - first) as f64 - (calls * CRASHING as u64) as f64]
    });
    Figure::new("holes after a crash", "numbers", &format!("{CRASHING} sessions"), &names(&RIVALS[..DENSE]), &holes)
}

/// Returns the names of rivals.
fn names(rivals: &[NamedExpression]) -> Vec<&'static str> {
    rivals.iter().map(|(name, _)| *name).collect()
}
