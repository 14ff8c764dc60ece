//! The cost of an ID, compared with other keys: `make bench` measures it, and `make bench-plot` plots it.
//!
//! Each file is one part of the benchmark: [`cost`], [`conceal`], [`crates`], [`storage`] with its [`lookups`], [`copy`], [`oltp`],
//! [`contention`] with [`latency`], [`wire`], [`service_level`], [`segments`] with [`segments_wire`], [`serials`],
//! [`fleet`], [`portable`], and [`failovers`] with its [`failover_load`]. Each part except [`crates`] starts its own [`server`]. The
//! rivals take turns ([`effort::alternate`]), and the part returns the figures of its [`report`].

pub mod chart;
pub mod conceal;
pub mod contention;
pub mod copy;
pub mod cost;
pub mod cpu;
pub mod crates;
pub mod effort;
pub mod failover_load;
pub mod failovers;
pub mod fleet;
pub mod latency;
pub mod lookups;
pub mod machine;
pub mod measured_files;
pub mod oltp;
pub mod pgbench;
pub mod portable;
pub mod registry_client;
pub mod report;
pub mod rivals;
pub mod segments;
pub mod segments_server;
pub mod segments_wire;
pub mod serials;
pub mod server;
pub mod service_level;
pub mod sessions;
pub mod stats;
pub mod storage;
pub mod svg;
pub mod table;
pub mod wire;
