//! The texts that users see. There is one file for each feature, with its errors (SQLSTATE, message, detail and hint)
//! and its log messages.

pub mod argument;
pub mod clock;
pub mod conceal;
pub mod error;
pub mod fleet;
pub mod guard;
pub mod id;
pub mod issue;
pub mod layout;
pub mod mark;
pub mod pages;
pub mod partition;
pub mod preload;
pub mod registry;
pub mod report;
pub mod segment;
pub mod serial;
pub mod serial_at_commit;
pub mod start;
pub mod witness;
pub mod worker_id;
