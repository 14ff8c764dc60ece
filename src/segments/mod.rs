//! Segments on this server: from the request for a number to the block that the registry has granted.

pub mod client;
pub mod connections;
pub mod draw;
pub mod facts;
pub mod failures;
pub mod fetch;
pub mod give_back;
pub mod known;
pub mod newcomers;
pub mod report;
pub mod slots;
pub mod view;
