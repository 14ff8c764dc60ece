//! The registry and its servers: every state that a few steps can reach, breadth first. Without one rule, the search finds the
//! shortest schedule that fails.

mod bounds;
mod directed;
#[path = "../fleet/earlier.rs"]
mod earlier;
#[path = "../fleet/faults.rs"]
#[allow(dead_code)]
mod faults;
mod holds;
#[path = "../fleet/invariants.rs"]
#[allow(dead_code)]
mod invariants;
mod needed_rules;
#[path = "../fleet/owner.rs"]
mod owner;
mod page;
mod rules;
mod search;
#[path = "../fleet/server.rs"]
#[allow(dead_code)]
mod server;
mod state;
mod step;
mod words;
#[path = "../fleet/world.rs"]
#[allow(dead_code)]
mod world;
