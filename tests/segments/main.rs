//! Segments: numbers of a tag that several servers issue. One ledger contains the numbers of all servers, and no number is in it
//! twice. Each promise has a control: a server that breaks one rule. How the registry assigns blocks is tested in `tests/registry`, and
//! how sessions share a block in `crates/flake`.

mod cost;
mod crash;
mod crowded;
mod dropped;
mod embedded;
mod fenced;
mod holder;
mod ledger;
mod lost;
mod past_periods;
mod refusals;
mod registry_away;
mod rights;
mod series;
mod servers;
mod slots;
mod unknown;
mod unserved;
mod view;
