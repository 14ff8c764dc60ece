//! Private PostgreSQL servers for tests and measurements.
//!
//! A [`Cluster`] is a data directory with a server that listens on a Unix socket next to it. An unprivileged user runs the
//! server. In a test run, the directory is under `/dev/shm` if there is enough room. Otherwise, it is under `target/clusters/`,
//! or under the temporary directory if the servers' user cannot enter the repository. When the value is dropped, the server is
//! stopped and its files are removed. If the process is killed, the server is stopped as well. The server uses the extension that
//! `make install` installed, unless a test specifies a different library. The harness changes nothing else, and ends no process
//! except those that it started.

mod assertions;
mod client;
mod faketime;
mod files;
mod haproxy;
mod host;
mod installation;
mod load;
mod nemesis;
mod outliving;
mod page;
mod patience;
mod patroni;
mod pgbouncer;
mod proxy;
mod ready;
mod reboot;
mod recipe;
mod registry;
mod rounds;
mod server;
mod service;
mod set_on_drop;
mod shell;
mod sparse_ids;
mod standby;
mod tool;
mod unread_client;
mod versions;
mod watcher;

pub use assertions::{assert_caught, assert_caught_by_chance, check_increasing, check_unique, not_tested};
pub use client::{Answer, copy_ids, end_of, hex, limit_memory, printed, sqlstate, texts, waiting};
pub use faketime::faketime;
pub use files::{files, texts_of};
pub use haproxy::HaProxy;
pub use host::{Host, repository};
pub use installation::Installation;
pub use load::{Ask, History, Load};
pub use nemesis::Chance;
pub use page::{
    CodeBlock, Section, block_with, blocks, code_blocks, compare, contributors_pages, page, sections, settings,
};
pub use patience::{PATIENCE, SOON, found_within, succeeds_within, within};
pub use patroni::{Patroni, PatroniMember};
pub use pgbouncer::PgBouncer;
pub use proxy::Proxy;
pub use reboot::Boot;
pub use recipe::Recipe;
pub use rounds::{rounds, thorough};
pub use server::{Builder, Cluster, Stop, postmaster_pid, processes_in};
pub use service::{Service, loopback};
pub use set_on_drop::SetOnDrop;
pub use sparse_ids::{SPARSE_BELOW_TIME, SPARSE_LAYOUT, SPARSE_PER_SECOND, draw_above, draw_beside, last_to_draw};
pub use tool::{Scratch, command, output, tool, typed};
pub use unread_client::UnreadClient;
pub use versions::{
    alter_system_takes_unknown_names, both_ways, key_conflict, major, origins_setting, supported, wait_event,
};
pub use watcher::watch;

/// A connection, from the crate `postgres`.
pub use postgres::Client;
