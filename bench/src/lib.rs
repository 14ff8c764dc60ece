//! What an ID costs, beside what it replaces: `make bench` measures, `make bench-plot` draws.
//!
//! One part of the benchmark a file: [`cost`], [`storage`] with its [`lookups`], [`oltp`], [`contention`] with [`latency`],
//! [`wire`]. Each starts a [`server`] of its own, lets the rivals take turns ([`effort::alternate`]) and returns the figures of
//! its [`report`].

pub mod chart;
pub mod contention;
pub mod cost;
pub mod cpu;
pub mod effort;
pub mod latency;
pub mod lookups;
pub mod machine;
pub mod oltp;
pub mod pgbench;
pub mod pgbouncer;
pub mod report;
pub mod rivals;
pub mod server;
pub mod sessions;
pub mod stats;
pub mod storage;
pub mod table;
pub mod wire;
