//! What the other tests rely on: the harness does what it says.

mod end;
mod environment;
mod proxy;
mod rooms;
mod script;
mod sources;
