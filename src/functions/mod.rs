//! The SQL functions, with one file for each group. These files read arguments and raise errors, and contain no
//! `unsafe`.
#![forbid(unsafe_code)]
#![allow(clippy::type_complexity)] // The rows of set-returning functions are tuples.

pub mod accept_clock;
#[cfg(feature = "baseline")]
pub mod baseline;
pub mod check;
pub mod conceal;
pub mod copy;
pub mod decode;
pub mod encode;
pub mod extension;
pub mod guard;
pub mod issue;
pub mod key_column;
pub mod layout_or_column;
pub mod layouts;
pub mod partition_step;
pub mod partitions;
pub mod preload;
pub mod registry_status;
pub mod segment;
pub mod serial;
pub mod serial_at_commit;
pub mod serial_gaps;
pub mod serial_keep;
pub mod series;
pub mod series_definition;
pub mod series_next;
pub mod series_rights;
pub mod set_mark;
pub mod status;
pub mod text;
pub mod uuid;
pub mod version;
