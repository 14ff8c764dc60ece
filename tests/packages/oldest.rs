//! The library works with every minor release of its major version: it needs nothing of the server that the oldest release lacks.

use std::collections::BTreeSet;
use std::path::Path;

use cluster::{Host, assert_caught, command, ensure, major, output, page};

/// What the oldest releases have, as `scripts/oldest` has written it.
const OLDEST: &str = include_str!("oldest.txt");

/// The oldest release of the tested major version that was read.
fn release() -> &'static str {
    let releases = OLDEST.lines().find_map(|line| line.strip_prefix("# The oldest releases: ")).expect("a list");
    let prefix = format!("{}.", major());
    releases.split(' ').find(|release| release.starts_with(&prefix)).expect("a release of each version")
}

/// The functions and variables that the server must have when it loads a library, except those of other libraries: symbols of the C
/// library have a version, those of libpq a prefix, and weak ones need not exist.
fn needed(library: &Path) -> BTreeSet<String> {
    let listed = output(command("nm").args(["--dynamic", "--undefined-only"]).arg(library));
    let names = listed.lines().filter_map(|line| line.trim().strip_prefix("U "));
    names.filter(|name| !name.contains('@') && !name.starts_with("PQ")).map(String::from).collect()
}

/// Whether the oldest release has all of these.
fn check(needed: &BTreeSet<String>) -> Result<(), String> {
    let major = major();
    let has = |line: &&str| line.split(' ').skip(1).any(|version| version == major);
    let there: BTreeSet<&str> = OLDEST.lines().filter(has).filter_map(|line| line.split(' ').next()).collect();
    let lacking: Vec<&String> = needed.iter().filter(|name| !there.contains(name.as_str())).collect();
    ensure!(lacking.is_empty(), "PostgreSQL {} is not known to have {lacking:?}: run scripts/oldest", release());
    Ok(())
}

#[test]
fn the_library_needs_nothing_that_the_oldest_minor_release_lacks() {
    let mut needed = needed(&Host::get().installation().libraries.join("snowflake_pg.so"));
    assert!(needed.len() > 150 && needed.contains("ShmemInitStruct"), "{needed:?}");
    check(&needed).unwrap();
    let text = page("docs/installing.md").replace('\n', " ");
    assert!(text.contains(release()), "docs/installing.md does not name {}", release());
    // A function that came with minor releases of November 2026.
    needed.insert("heap_datum_check".into());
    assert_caught(check(&needed), "is not known to have [\"heap_datum_check\"]");
}
