//! The registry and its servers: random worlds, worlds without one rule, and schedules that must go on working. The exhaustive
//! search shows that each rule is needed.

mod actions;
mod availability;
mod controls;
mod earlier;
mod explore;
// The exhaustive search takes away the other rules.
#[allow(dead_code)]
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
