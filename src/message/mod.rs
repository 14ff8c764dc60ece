//! The errors and warnings that a user gets.

pub mod error;
pub mod log_limit;
pub mod reasons;
pub mod wording;
