//! Thin safe wrappers around PostgreSQL's own functions and variables. No wrapper knows how IDs are made, and no wrapper raises an
//! error of this extension.

pub mod answer;
pub mod backend_slots;
pub mod background_worker;
pub mod civil;
pub mod composite;
pub mod condition_variable;
pub mod conninfo;
pub mod fired;
pub mod latch;
pub mod libpq;
pub mod local_setting;
pub mod locked;
pub mod lookup;
pub mod origin;
pub mod plans;
pub mod privilege;
pub mod recovery;
pub mod relation;
pub mod role;
pub mod server;
pub mod setting;
pub mod simplify;
pub mod startup;
pub mod sync_standby;
pub mod text_arg;
pub mod text_value;
pub mod timestamp;
pub mod transaction;
pub mod trigger;
pub mod utility;
pub mod versions;
pub mod wait_event;
pub mod wal;
