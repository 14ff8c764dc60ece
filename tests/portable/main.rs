//! The portable functions: SQL for databases in which the library cannot be loaded, and expressions for other programs.

mod aurora;
#[path = "../../crates/flake/tests/common/random.rs"]
mod choices;
#[path = "../sql/vectors/compare.rs"]
mod compare;
mod copies;
mod errors;
mod extension;
mod history;
mod install;
mod issue;
mod lag;
mod library;
mod locks;
mod page;
mod plans;
mod random;
mod rights;
mod server;
mod tle;
mod vectors;
mod warehouses;
