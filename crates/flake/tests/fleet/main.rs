//! The registry and its servers: random worlds, worlds without one rule, and schedules in which one rule decides.

mod actions;
mod amount;
mod availability;
mod controls;
mod directed;
mod earlier;
mod explore;
mod faults;
mod forged;
mod heal;
mod holds;
mod invariants;
mod owner;
#[path = "../common/random.rs"]
mod random;
mod reserved;
mod schedules;
mod server;
mod steps;
mod world;
#[path = "../common/worlds.rs"]
mod worlds;
