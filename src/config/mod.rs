//! The server's settings.

pub mod epoch;
pub mod guc;
pub mod guc_hooks;
pub mod identity;
pub mod turn;
