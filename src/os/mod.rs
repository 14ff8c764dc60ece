//! Wrappers around the operating system. No wrapper uses PostgreSQL or knows how IDs are made.

pub mod backtrace;
pub mod memory_file;
