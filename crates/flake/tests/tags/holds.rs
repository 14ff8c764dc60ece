//! Worlds with all rules: no number is drawn twice, no block in use is ahead of the registry, and every tag goes on.
//!
//! The environment variable `FLEET_WORLDS` is the number of worlds in all tests together. A test that fails prints the seed of its
//! world. With `SEED`, the same test runs only this world again.

use std::time::Instant;

use crate::actions::WORLDS;
use crate::amount::seed_and_worlds;
use crate::explore::explore;
use crate::faults::Fault;

/// The worlds that an everyday run explores.
const EVERYDAY: usize = 60_000;
const TESTS: usize = 5;

/// Explores worlds of these kinds.
#[track_caller]
fn hold(kinds: &[&str]) {
    let numbers: Vec<usize> = (0..WORLDS.len()).filter(|number| kinds.contains(&WORLDS[*number].0)).collect();
    assert_eq!(numbers.len(), kinds.len(), "{kinds:?}");
    let (seed, worlds) = seed_and_worlds(EVERYDAY, TESTS);
    let begin = Instant::now();
    match explore(Fault::None, &numbers, worlds, seed) {
        Ok(explored) => {
            println!("{kinds:?}: {explored:?} in {:?}", begin.elapsed());
            // The exploration is meaningful only if numbers are drawn.
            assert!(explored.drawn > worlds as u64 || worlds < 100, "{explored:?}");
        }
        Err(found) => panic!("SEED={} replays this world: {found:?}", found.seed),
    }
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
