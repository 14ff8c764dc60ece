//! The server that `make run` leaves running and `make bench` measures on.

pub mod cpu;
pub mod stats;

use cluster::{Builder, Cluster};

/// The server of `make run`. `SNOWFLAKE_RUN` names another, for tests that must not disturb the user's.
pub fn server() -> Builder {
    let name = std::env::var("SNOWFLAKE_RUN").unwrap_or_else(|_| "run".into());
    Cluster::builder(&format!("{name}-pg{}", cluster::major()))
        .set("snowflake_pg.worker_id", "7")
        .set("fsync", "on")
        .set("shared_buffers", "512MB")
        .set("max_wal_size", "8GB")
}

/// The number of rounds, unless `ROUNDS` in the environment asks for fewer.
pub fn rounds(usual: usize) -> usize {
    let asked = std::env::var("ROUNDS").ok().and_then(|text| text.parse().ok());
    usual.min(asked.unwrap_or(usual))
}
