//! The harness, on which the other tests rely, works as it says.

mod end;
mod environment;
mod hooks;
mod installers;
mod layers;
mod names;
mod proxy;
mod script;
mod sources;
