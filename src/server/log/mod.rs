//! Determines when the server logs its identity, clock events and the end of its layout. The module [`crate::message`]
//! contains the texts.

mod clock_event;
mod end_of_layout;
mod start_and_promotion;

pub use clock_event::clock;
pub use end_of_layout::end_of_layout;
pub use start_and_promotion::{registry_given, server};
