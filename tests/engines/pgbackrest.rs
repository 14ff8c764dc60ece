//! Types the blocks of docs/pgbackrest.md: servers that are restored from a pgBackRest repository repeat no ID.

mod elsewhere;
mod hosts;
mod in_place;
mod registry;
mod settings;
mod standby;

use cluster::Recipe;

/// The tests of a section type all of its blocks.
#[test]
fn every_section_with_blocks_is_tested() {
    let tested = [
        "Set up the repository",
        "Restore in place to an earlier time",
        "Remove the recovery settings",
        "Restore on another host while the old server runs",
        "Replace a server that is gone",
        "Back up from a standby",
        "Restore the registry",
    ];
    assert_eq!(Recipe::titles(hosts::PAGE), tested);
}
