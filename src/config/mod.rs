//! The server's settings.

pub mod epoch;
pub mod guc;
pub mod identity;
