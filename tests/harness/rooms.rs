//! The rooms of `src/`: a file uses only its own room and those below, and no files use each other in a circle.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use cluster::repository;

/// The rooms from the lowest to the highest. `faults.rs` is below all.
const ROOMS: [&str; 6] = ["os", "pg", "message", "config", "generator", "functions"];

/// The files of the rooms, as `room::file`, and the code of each.
type Sources = BTreeMap<String, String>;

fn sources() -> Sources {
    let src = repository().join("src");
    let file = |(path, text): (PathBuf, String)| {
        let inside = path.strip_prefix(&src).expect("a file of src/").with_extension("");
        // A link in a comment is not an import.
        let code: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        (inside.to_string_lossy().replace('/', "::"), code.join("\n"))
    };
    let all = crate::sources::sources(&ROOMS.map(|room| format!("src/{room}")));
    all.into_iter().map(file).collect()
}

/// The files that a file uses: each `crate::room::file`, and those in the braces after `crate::room::`.
fn used(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for rest in text.split("crate::").skip(1) {
        let Some((room, rest)) = rest.split_once("::").filter(|(room, _)| ROOMS.contains(room)) else { continue };
        let listed = rest.strip_prefix('{').and_then(|rest| rest.split_once('}')).map_or(rest, |(listed, _)| listed);
        let name = |part: &str| part.trim().split(|c: char| !c.is_alphanumeric() && c != '_').next().map(String::from);
        let parts = if listed == rest { vec![rest] } else { listed.split(',').collect() };
        found.extend(parts.into_iter().filter_map(name).map(|name| format!("{room}::{name}")));
    }
    found
}

fn check_direction(sources: &Sources) -> Result<(), String> {
    let height = |file: &str| ROOMS.iter().position(|room| file.split("::").next() == Some(*room));
    for (file, text) in sources {
        if text.contains("super::super") {
            return Err(format!("{file} names a file by super::super, which is not followed here"));
        }
        if let Some(above) = used(text).into_iter().find(|used| height(used) > height(file)) {
            return Err(format!("{file} uses {above}, which is in a room above its own"));
        }
    }
    Ok(())
}

/// Repeatedly removes the files that use none of the remaining files. The files that are left form a circle or depend on one.
fn check_circles(sources: &Sources) -> Result<(), String> {
    let mut left: BTreeMap<&String, BTreeSet<String>> = sources
        .iter()
        .map(|(file, text)| (file, used(text).into_iter().filter(|used| used != file).collect()))
        .collect();
    loop {
        let files: BTreeSet<String> = left.keys().map(|file| (*file).clone()).collect();
        let before = left.len();
        left.retain(|_, used| !used.is_disjoint(&files));
        if left.is_empty() {
            return Ok(());
        }
        if left.len() == before {
            return Err(format!(
                "these files use each other: {}",
                left.into_keys().cloned().collect::<Vec<_>>().join(", ")
            ));
        }
    }
}

#[test]
fn a_file_uses_only_rooms_below_its_own() {
    let sources = sources();
    assert!(used(&sources["generator::draw"]).contains("config::guc"), "the imports of a file are not found");
    check_direction(&sources).unwrap();
}

#[test]
fn no_files_use_each_other_in_a_circle() {
    check_circles(&sources()).unwrap();
}

#[test]
fn an_import_upwards_is_caught() {
    let mut sources = sources();
    sources.get_mut("pg::latch").expect("a file").push_str("use crate::generator::{clock, wait};");
    cluster::assert_caught(check_direction(&sources), "pg::latch uses generator::clock");
}

#[test]
fn a_circle_inside_a_room_is_caught() {
    let mut sources = sources();
    sources.get_mut("generator::clock").expect("a file").push_str("use crate::generator::extend::renew;");
    cluster::assert_caught(check_circles(&sources), "generator::clock, generator::draw, generator::extend");
}
