//! The errors and warnings that a user gets.

pub mod conceal;
pub mod error;
pub mod fleet;
pub mod guard;
pub mod pages;
pub mod reasons;
pub mod segment;
pub mod segment_problem;
pub mod serial;
pub mod serial_problem;
pub mod trouble;
pub mod wording;
