//! Worlds with all rules: no ID is issued twice, nobody is fenced without a copy, nobody loses a worker ID before its bound, and
//! nobody is stuck.

use crate::faults::FleetFault;
use crate::world::FleetWorld;
use crate::worlds;

/// The worlds that an everyday run explores.
const EVERYDAY: usize = 140_000;
const TESTS: usize = 14;

#[track_caller]
fn hold(kinds: &[&str]) {
    worlds::hold::<FleetWorld>(FleetFault::None, kinds, EVERYDAY, TESTS);
}

#[test]
fn worlds_with_moved_copied_and_restored_servers_hold() {
    hold(&["undisturbed", "machines"]);
}

#[test]
fn worlds_with_wrong_clocks_hold() {
    hold(&["clocks", "layouts"]);
}

#[test]
fn worlds_with_failovers_of_the_registry_hold() {
    hold(&["failovers", "failovers in a row"]);
}

#[test]
fn worlds_with_bursts_of_failovers_hold() {
    hold(&["bursts"]);
}

#[test]
fn worlds_with_bursts_of_failovers_and_restored_registries_hold() {
    hold(&["bursts and backups", "bursts and everything"]);
}

#[test]
fn worlds_with_clocks_at_the_ends_of_quarantines_hold() {
    hold(&["edges"]);
}

#[test]
fn worlds_with_upgraded_registries_hold() {
    hold(&["upgrades", "upgrades and backups"]);
}

#[test]
fn worlds_with_restored_tables_hold() {
    hold(&["dumps", "dumps and backups"]);
}

#[test]
fn worlds_with_forged_calls_hold() {
    hold(&["forged calls", "forged calls and clocks"]);
}

#[test]
fn worlds_with_forged_calls_and_failovers_hold() {
    hold(&["forged calls and failovers", "forged calls and bursts", "forged calls and edges"]);
}

#[test]
fn worlds_with_restored_registries_and_an_administrator_hold() {
    hold(&["backups", "opened"]);
}

#[test]
fn worlds_with_copied_memories_hold() {
    hold(&["copied memories", "everything and copied memories"]);
}

#[test]
fn worlds_with_reserved_worker_ids_hold() {
    hold(&["reservations", "reservations and bursts"]);
}

#[test]
fn worlds_with_everything_hold() {
    hold(&["everything"]);
}
