//! Types the blocks of docs/fleet.md on servers of a fleet.

mod changed;
mod hosts;
mod lost;
mod moved;
mod outage;
mod setup;
mod tags;

use cluster::Recipe;

/// The tests of a section type all of its blocks.
#[test]
fn every_section_with_blocks_is_tested() {
    let tested = [
        "Set up the registry",
        "Configure the servers",
        "See which server has which worker ID",
        "Add a server",
        "Restart a server or its machine",
        "The registry is down",
        "Restore the registry",
        "The registry is in quarantine",
        "Move the registry to a standby",
        "Move the registry with a dump",
        "A server is fenced",
        "All worker IDs are in use",
        "The registry inside the cluster that it serves",
        "Change the layout",
        "Create tags",
        "A tag skips numbers after a failover",
        "Change from configured worker IDs to a registry",
        "Replace a registry that has no backup",
    ];
    assert_eq!(Recipe::titles(hosts::PAGE), tested);
}
