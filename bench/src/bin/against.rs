//! `make bench-against REV=..`: compares the cost of an ID between this tree's library and a different library, on two servers
//! that take turns. The other library is either that of a different revision, or this tree's library built without its counters.

use std::time::{Duration, Instant};

use bench::effort::rounds;
use bench::stats::{Sample, heading, row};
use cluster::{Client, Cluster};

/// The number of rounds. Each round measures both servers.
const ROUNDS: usize = 101;
/// The number of calls in one measurement, with ten calls a row.
const CALLS: u64 = 1_000_000;

fn main() {
    let directories: Vec<String> = std::env::args().skip(1).collect();
    let [other, this] = &directories[..] else { panic!("two directories with a library each") };
    let libraries = [("other", other), ("this", this)];
    let servers = libraries.map(|(name, directory)| {
        Cluster::builder(&format!("against_{name}"))
            .set("dynamic_library_path", &format!("{directory}:$libdir"))
            // The layout has four million IDs in a tick, so that no session is throttled.
            .set("snowflake_pg.layout", "40:1:22")
            .start()
    });
    let mut sessions = servers.each_ref().map(session);
    let mut samples = [(); 2].map(|()| Sample::default());
    let (mut ratios, mut differences) = (Sample::default(), Sample::default());
    for round in 0..=rounds(ROUNDS) {
        // The servers also take turns at beginning a round.
        let mut order = [0, 1];
        order.rotate_left(round % 2);
        let mut costs = [0.0; 2];
        for n in order {
            costs[n] = cost(&mut sessions[n]);
        }
        // The first round only warms up.
        if round > 0 {
            samples.iter_mut().zip(costs).for_each(|(sample, cost)| sample.push(cost));
            ratios.push(costs[1] / costs[0]);
            differences.push(costs[1] - costs[0]);
        }
    }
    heading(&format!("Cost per ID ({} rounds of {CALLS})", rounds(ROUNDS)), &["library", "ns", "min .. max"]);
    for ((name, _), sample) in libraries.iter().zip(&samples) {
        row(&[name, &format!("{:.1}", sample.median()), &sample.spread(1)]);
    }
    let medians = samples[1].median() / samples[0].median();
    println!("\nthis / other: {medians:.3} of the medians, {:.3} median of the rounds", ratios.median());
    println!("this - other: {:.1} ns, median of the rounds", differences.median());
}

/// Opens a session with only the function that is measured. The rest of the extension's script may not fit the other library.
fn session(server: &Cluster) -> Client {
    let mut client = server.connect();
    client
        .batch_execute(
            "SET jit = off; SET max_parallel_workers_per_gather = 0; SET work_mem = '256MB';
             CREATE FUNCTION snowflake_nextval() RETURNS bigint VOLATILE PARALLEL SAFE LANGUAGE c
             AS 'snowflake_pg', 'snowflake_nextval_wrapper'",
        )
        .expect("the library has this function");
    client
}

/// Returns the cost of a call in nanoseconds, without the cost of the loop around it.
fn cost(client: &mut Client) -> f64 {
    let mut timed = |expression: &str| {
        let columns = vec![format!("count({expression})"); 10].join(", ");
        let sql = format!("SELECT {columns} FROM generate_series(1, {})", CALLS / 10);
        std::thread::sleep(Duration::from_millis(5));
        let begin = Instant::now();
        client.batch_execute(&sql).expect("IDs can be drawn");
        begin.elapsed().as_secs_f64()
    };
    (timed("snowflake_nextval()") - timed("1")) * 1e9 / CALLS as f64
}
