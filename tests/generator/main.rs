//! Issued IDs: no duplicates, increasing in each session, to the end of the time range, and within the limits.

mod blocks;
mod end_of_time;
mod errors;
mod interrupts;
mod largest;
mod limits;
mod presets;
mod quiet_tables;
mod soak;
mod starvation;
mod throttling;
mod uniqueness;
mod waits;
