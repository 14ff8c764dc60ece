//! The clocks: set back, set forward, restored on another host, stalled.

mod restored;
mod steps;
