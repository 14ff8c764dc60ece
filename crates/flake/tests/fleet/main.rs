//! The registry and its servers in random worlds and in directed schedules.
#![allow(dead_code)]

mod actions;
mod checks;
mod explore;
mod faults;
mod heal;
mod random;
mod server;
mod world;
