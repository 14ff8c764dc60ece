//! Serials: numbers without gaps, whatever happens to transactions, sessions and servers, and which sessions wait for each other.

mod accountant;
mod attacks;
mod encodings;
mod failover;
mod fuzz;
mod gapless;
mod interrupted_gaps;
mod replaced;
mod reported;
mod restored;
mod schema_swap;
mod series_privilege;
mod waits;
