//! Worlds with all rules: no number is drawn twice, no block in use is ahead of the registry, and every tag goes on.

use crate::faults::TagFault;
use crate::world::TagWorld;
use crate::worlds;

/// The worlds that an everyday run explores.
const EVERYDAY: usize = 60_000;
const TESTS: usize = 5;

#[track_caller]
fn hold(kinds: &[&str]) {
    worlds::hold::<TagWorld>(TagFault::None, kinds, EVERYDAY, TESTS);
}

#[test]
fn worlds_with_dropped_and_recreated_tags_hold() {
    hold(&["undisturbed", "changes"]);
}

#[test]
fn worlds_with_failovers_of_the_registry_hold() {
    hold(&["failovers", "failovers in a row"]);
}

#[test]
fn worlds_with_restored_registries_and_an_administrator_hold() {
    hold(&["backups", "opened"]);
}

#[test]
fn worlds_with_tags_that_servers_create_hold() {
    hold(&["periods", "periods and backups"]);
}

#[test]
fn worlds_with_everything_hold() {
    hold(&["everything"]);
}
