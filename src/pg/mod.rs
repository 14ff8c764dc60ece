//! Thin safe wrappers around PostgreSQL's own functions and variables. No wrapper knows how IDs are made, and no wrapper raises an
//! error of this extension.

pub mod backend_slots;
pub mod background_worker;
pub mod composite;
pub mod condition_variable;
pub mod discard;
pub mod latch;
pub mod origin;
pub mod recovery;
pub mod relation;
pub mod row_security;
pub mod server;
pub mod setting;
pub mod startup;
pub mod sync_standby;
pub mod text_arg;
pub mod timestamp;
pub mod transaction;
pub mod versions;
pub mod wait_event;
pub mod wal;
