//! Types the blocks of docs/registry.md on servers of a fleet, and those of other pages that need a registry.

mod changed;
mod hosts;
mod lost;
mod moved;
mod outage;
mod setup;
mod tags;
