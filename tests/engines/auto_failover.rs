//! Formations of pg_auto_failover: a monitor and two nodes, which are set up as docs/pg_auto_failover.md says.

mod added;
mod formation;
mod split;
mod story;

use cluster::Recipe;

/// The tests of a section type all of its blocks.
#[test]
fn every_section_with_blocks_is_tested() {
    let tested = [
        "Set up a formation",
        "A planned failover",
        "After a crash",
        "Maintenance of a node",
        "Add the extension to an existing formation",
        "Without a registry",
        "The worker ID in the data directory",
    ];
    assert_eq!(Recipe::titles(formation::PAGE), tested);
}
