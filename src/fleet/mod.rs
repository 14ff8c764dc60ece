//! This server as a member of a fleet: its grant from the registry, and its side of the registry's protocol. The crate
//! `crates/flake` interprets the registry's answers.

pub mod about;
pub mod call;
pub mod grant;
pub mod heartbeat;
pub mod record;
pub mod refusal;
