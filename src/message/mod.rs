//! What a user reads when something goes wrong.

pub mod error;
pub mod log_limit;
pub mod reasons;
pub mod wording;
