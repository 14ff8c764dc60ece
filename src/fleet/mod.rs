//! This server as a member of a fleet: the grant that it has from the registry, and its side of the registry's protocol. Crate
//! `crates/flake` decides what an answer of the registry means.

pub mod about;
pub mod call;
pub mod grant;
pub mod record;
pub mod refusal;
