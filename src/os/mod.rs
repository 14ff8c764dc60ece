//! Wrappers around the operating system. They do not use PostgreSQL and contain no logic for IDs.

pub mod backtrace;
pub mod memory_file;
