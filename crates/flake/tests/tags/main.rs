//! Segments in random worlds: no number of a tag is taken twice, whatever the registry loses, and each rule is needed.

mod actions;
mod controls;
mod directed;
mod explore;
mod faults;
mod holds;
#[path = "../common/random.rs"]
mod random;
mod world;
#[path = "../common/worlds.rs"]
mod worlds;
