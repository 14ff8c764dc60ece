//! The servers that the benchmarks start and remove.

use std::time::Instant;

use cluster::{Answer, Builder, Client, Cluster};

/// Configures a server for a benchmark. The server is as durable as a production server, and runs no background work that would
/// disturb the measurement.
pub fn fresh(name: &str) -> Builder {
    Cluster::builder(&format!("bench-{name}-pg{}", cluster::major()))
        .set("snowflake_pg.worker_id", "7")
        // pgEdge's extension, if it is installed, has no default for this setting.
        .set("snowflake.node", "7")
        .set("fsync", "on")
        .set("max_connections", "400")
        .set("shared_buffers", "1GB")
        .set("max_wal_size", "16GB")
        // Checkpoints are run only when a measurement requests one. Any other checkpoint would slow down the rival whose turn it
        // is.
        .set("checkpoint_timeout", "1h")
        // Vacuuming a rival's table would slow down the rival whose turn it is as well.
        .set("autovacuum", "off")
}

/// Configures a server for a benchmark with four million IDs in a tick of a millisecond, so that no session is throttled.
pub fn unthrottled(name: &str) -> Builder {
    fresh(name).set("snowflake_pg.layout", "40:1:22").set("snowflake_pg.worker_id", "1")
}

/// Opens a connection to a server with the extension. Plans contain only what is measured.
pub fn session(server: &Cluster) -> Client {
    let mut client = server.session();
    // `work_mem` is high enough that the rows of generate_series are not written to a file.
    let settings = "SET jit = off; SET max_parallel_workers_per_gather = 0; SET work_mem = '256MB'";
    client.batch_execute(settings).expect("a session may set these");
    client
}

/// Runs statements, and returns the number of seconds that they took.
pub fn timed(client: &mut Client, sql: &str) -> f64 {
    let begin = Instant::now();
    client.run(sql);
    begin.elapsed().as_secs_f64()
}
