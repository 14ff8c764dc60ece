//! The generator on this server: from a request for an ID to the durable high-water mark. The crate `crates/flake`
//! determines which ID comes next.

pub mod assigned;
pub mod clock_behind;
pub mod current;
pub mod draw;
pub mod durable;
pub mod extend;
pub mod grant_end;
pub mod mark_storage;
pub mod own_range;
pub mod refusal;
pub mod slow_mark;
pub mod start;
pub mod witness;
