//! The generator on this server: from a request for an ID to the durable high-water mark. Crate `crates/flake` decides which ID
//! comes next.

pub mod assigned;
pub mod clock;
pub mod draw;
pub mod extend;
pub mod fleet_log;
pub mod fleet_witness;
pub mod grant;
pub mod guard;
pub mod log;
pub mod mark;
pub mod mark_worker;
pub mod origin_state;
pub mod refusals;
pub mod registrar;
pub mod registry_call;
pub mod shmem;
pub mod standby_watch;
pub mod start;
pub mod stats;
pub mod wait;
pub mod witness;
pub mod witness_holder;
