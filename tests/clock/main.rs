//! The clocks: set back, set forward, restored elsewhere, stalled.

mod restored;
mod steps;
