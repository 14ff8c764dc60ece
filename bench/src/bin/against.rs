//! `make bench-against REV=..`: compares the cost of an ID between this tree's library and a different library, on two servers that take
//! turns. The other library is either that of a different revision, or this tree's library built without its counters. This tree's library
//! also has the baseline, a function that only reads the clock and exchanges one atomic number.

use std::time::{Duration, Instant};

use bench::effort::rounds;
use bench::stats::{Sample, heading, row};
use cluster::{Client, Cluster};

/// The number of rounds. Each round measures both servers.
const ROUNDS: usize = 101;
/// What is measured: a name, the layout, the number of calls with ten calls a row, and the pause before them. In the second layout, a
/// burst runs ahead of the clock by half of `max_ahead`, and the lead ends in the pause.
const PLACES: [(&str, &str, u64, Duration); 2] = [
    ("in the tick of the clock", "40:1:22", 1_000_000, Duration::from_millis(5)),
    ("ahead of the clock", "41:10:12", 200_000, Duration::from_millis(60)),
];

fn main() {
    let directories: Vec<String> = std::env::args().skip(1).collect();
    let [other, this] = &directories[..] else { panic!("two directories with a library each") };
    for place in PLACES {
        measure(place, [("other", other), ("this", this)]);
    }
}

/// Compares two libraries, each a name and a directory.
fn measure((place, layout, calls, pause): (&str, &str, u64, Duration), libraries: [(&str, &String); 2]) {
    let servers = libraries.map(|(name, directory)| {
        Cluster::builder(&format!("against_{name}"))
            .set("dynamic_library_path", &format!("{directory}:$libdir"))
            .set("snowflake_pg.layout", layout)
            .set("snowflake_pg.worker_id", "1")
            .start()
    });
    let mut sessions = servers.each_ref().map(session);
    let baseline = sessions[1].batch_execute(&created("snowflake_baseline")).is_ok();
    // The name, the session and the function.
    let subjects = [
        ("other", 0, "snowflake_nextval()"),
        ("this", 1, "snowflake_nextval()"),
        ("baseline", 1, "snowflake_baseline()"),
    ];
    let subjects = if baseline { &subjects[..] } else { &subjects[..2] };
    let mut samples = vec![Sample::default(); subjects.len()];
    for round in 0..=rounds(ROUNDS) {
        for turn in 0..subjects.len() {
            // Each round begins with a different one.
            let n = (turn + round) % subjects.len();
            let cost = cost(&mut sessions[subjects[n].1], subjects[n].2, calls, pause);
            // The first round only warms up.
            if round > 0 {
                samples[n].push(cost);
            }
        }
    }
    heading(&format!("Cost per ID {place} ({} rounds of {calls})", rounds(ROUNDS)), &["library", "ns", "min .. max"]);
    for ((name, ..), sample) in subjects.iter().zip(&samples) {
        row(&[name, &format!("{:.1}", sample.median()), &sample.spread(1)]);
    }
    println!();
    compare("this / other", &samples[1], &samples[0]);
    let differences: Sample =
        samples[1].values().iter().zip(samples[0].values()).map(|(this, other)| this - other).collect();
    println!("this - other: {:.1} ns, median of the rounds", differences.median());
    if let Some(baseline) = samples.get(2) {
        compare("this / baseline (one clock read and one atomic exchange)", &samples[1], baseline);
    }
}

/// Prints the ratio of two costs: of the medians, and the median of the rounds with its interval.
fn compare(name: &str, one: &Sample, other: &Sample) {
    let ratios = one.over(other);
    let interval = ratios.interval().map(|(low, high)| format!(", 95 % interval {low:.3} .. {high:.3}"));
    println!(
        "{name}: {:.3} of the medians, {:.3} median of the rounds{}",
        one.median() / other.median(),
        ratios.median(),
        interval.unwrap_or_default()
    );
}

/// Returns the statement that creates a function of the library without arguments.
fn created(function: &str) -> String {
    format!(
        "CREATE FUNCTION {function}() RETURNS bigint VOLATILE PARALLEL SAFE LANGUAGE c AS 'snowflake_pg', '{function}_wrapper'"
    )
}

/// Opens a session with only the function that is measured. The rest of the extension's script may not fit the other library.
fn session(server: &Cluster) -> Client {
    let mut client = server.connect();
    client
        .batch_execute("SET jit = off; SET max_parallel_workers_per_gather = 0; SET work_mem = '256MB'")
        .expect("a session may set these");
    client.batch_execute(&created("snowflake_nextval")).expect("the library has this function");
    client
}

/// Returns the cost of a call in nanoseconds, without the cost of the loop around it.
fn cost(client: &mut Client, function: &str, calls: u64, pause: Duration) -> f64 {
    let mut timed = |expression: &str| {
        let columns = vec![format!("count({expression})"); 10].join(", ");
        let sql = format!("SELECT {columns} FROM generate_series(1, {})", calls / 10);
        std::thread::sleep(pause);
        let begin = Instant::now();
        client.batch_execute(&sql).expect("IDs can be drawn");
        begin.elapsed().as_secs_f64()
    };
    (timed(function) - timed("1")) * 1e9 / calls as f64
}
