//! Private PostgreSQL servers for tests.
//!
//! A [`Cluster`] is a data directory under `target/clusters/`, or under the temporary directory where the servers' user
//! cannot enter the repository, with a server that listens on a Unix socket beside it, run by an unprivileged user, stopped
//! and removed when the value is dropped. The extension is the one that `make install` put into the PostgreSQL installation,
//! unless a test names another library. Nothing else is touched, and no process is ended but those started here.

mod client;
mod host;
mod installation;
mod load;
mod major;
mod nemesis;
mod page;
mod server;
mod settle;
mod shell;
mod standby;
mod tool;
mod verdict;

pub use client::{Answer, copy_ids, end_of, printed, sqlstate, waiting};
pub use host::{Host, repository};
pub use installation::Installation;
pub use load::{Ask, Ledger, Load};
pub use major::{alter_system_takes_unknown_names, both_ways, key_conflict, major, origins_setting, wait_event};
pub use nemesis::Chance;
pub use page::{Section, block_with, blocks, page, sections, settings};
pub use server::{Builder, Cluster, Stop, within};
pub use tool::{Scratch, output, tool, typed};
pub use verdict::{assert_caught, check_increasing, check_ledger, not_tested};

/// What `postgres` calls a connection.
pub use postgres::Client;
