//! The portable functions: SQL for databases in which the library cannot be loaded, and expressions for other programs.

#[path = "../../crates/flake/tests/common/random.rs"]
mod choices;
#[path = "../sql/vectors/compare.rs"]
mod compare;
mod errors;
mod install;
mod page;
mod plans;
mod random;
mod server;
mod tle;
mod vectors;
mod warehouses;
