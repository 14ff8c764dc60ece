//! Servers that get their worker IDs from a registry: which worker ID a server has, what it says when the registry does not answer, and
//! the IDs of whole fleets. One ledger contains every ID of all servers of a fleet, and no ID is in it twice. Each promise has a control: a
//! server that breaks one rule, or servers without a registry that share a worker ID. What the registry itself answers is tested in
//! `tests/registry`.

mod ahead;
mod answers;
mod application;
mod application_page;
mod clock_back;
mod clocks;
mod connection;
mod copies;
mod cost;
mod embedded;
mod failovers;
mod fake;
mod fleet;
mod forgotten;
mod given_back;
mod guard;
mod lease;
mod lossy;
mod registry_lost;
mod registry_unwritable;
mod rewound;
mod server_restored;
mod staging;
mod together;
mod troubles;
mod witness_removed;
mod worker_ids;
