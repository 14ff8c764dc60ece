//! The harness, on which the other tests rely, works as it says.

mod end;
mod environment;
mod hooks;
mod installers;
mod names;
mod proxy;
mod rooms;
mod script;
mod sources;
