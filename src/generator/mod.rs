//! The generator on this server: from a request for an ID to the durable high-water mark. The crate `crates/flake`
//! determines which ID comes next.

pub mod assigned;
pub mod current;
pub mod draw;
pub mod durable;
pub mod extend;
pub mod guard;
pub mod mark;
pub mod slow_mark;
pub mod start;
pub mod witness;
