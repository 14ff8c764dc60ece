//! The background workers.

pub mod mark_worker;
pub mod registrar;
pub mod standby_watch;
