//! The background workers. The module [`crate::pg::background_worker`] registers them, and notices if no
//! slot is available.

pub mod mark_worker;
pub mod registrar;
pub mod standby_watch;
