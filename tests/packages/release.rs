//! The files of a release other than packages: the notes, the list of crates, the distribution for PGXN and the sums.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use cluster::{Scratch, assert_caught, command, ensure, output, page, repository, typed};
use serde_json::Value;

use crate::build::VERSION;

/// A script of the repository.
fn script(name: &str) -> Command {
    command(repository().join("scripts").join(name))
}

/// The notes, as a draft or not, for a tag.
fn notes(draft: &str, tag: &str) -> Result<String, String> {
    let mut notes = script("release-notes");
    notes.env("DRAFT", draft).arg(tag);
    typed(notes, "")
}

#[test]
fn the_notes_are_the_newest_section_of_the_changelog() {
    let tag = format!("v{VERSION}");
    let found = notes("1", &tag).unwrap();
    let changes = page("CHANGELOG.md");
    let (heading, rest) = changes.split_once("\n## ").and_then(|(_, rest)| rest.split_once('\n')).expect("a section");
    let section = rest.split("\n## ").next().expect("a section");
    assert_eq!(found.trim().lines().count(), section.trim().lines().count());
    // A relative link leads nowhere outside of the repository.
    let cargo = page("Cargo.toml");
    let repository = cargo.lines().find_map(|line| line.strip_prefix("repository = ")).expect("an address");
    let address = format!("{}/blob/{tag}/", repository.trim_matches('"'));
    assert!(found.contains(&format!("]({address}docs/")), "{found}");
    assert_eq!(found.replace(&address, "").trim(), section.trim());
    assert_caught(notes("1", "v0.0.9").map(drop), "the tag is v0.0.9");
    if heading.contains("unreleased") {
        assert_caught(notes("", &tag).map(drop), "put the date there");
    } else {
        assert_eq!(notes("", &tag), Ok(found));
    }
}

/// Checks that a list has the crates of the library, each once, and that each of them is described.
fn check_crates(text: &str, tree: &str) -> Result<(), String> {
    let list: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    ensure!(list["bomFormat"] == "CycloneDX" && list["specVersion"] == "1.5", "it is another format");
    ensure!(list["serialNumber"].as_str().is_some_and(|number| number.starts_with("urn:uuid:")), "it has no number");
    let components = list["components"].as_array().ok_or("there are no components")?;
    let mut found = BTreeSet::new();
    for component in components.iter().chain([&list["metadata"]["component"]]) {
        let field = |name: &str| component[name].as_str().ok_or(format!("no {name} in {component}"));
        let (name, version) = (field("name")?, field("version")?);
        ensure!(field("purl")? == format!("pkg:cargo/{name}@{version}"), "{component}");
        ensure!(component["licenses"][0]["expression"].is_string(), "{name} has no licence");
        // The crates of the repository come from nowhere else.
        let ours = ["snowflake_pg", "flake"].contains(&name);
        ensure!(ours || component["hashes"][0]["content"].is_string(), "{name} has no checksum");
        ensure!(found.insert(format!("{name} v{version}")), "{name} is listed twice");
    }
    let wanted = tree.lines().map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" "));
    let wanted: BTreeSet<String> = wanted.filter(|line| !line.is_empty()).collect();
    let differing: Vec<_> = found.symmetric_difference(&wanted).collect();
    ensure!(differing.is_empty(), "the list and the library differ in {differing:?}");
    let users = list["dependencies"].as_array().into_iter().flatten().filter_map(|user| user["ref"].as_str());
    let users: BTreeSet<&str> = users.collect();
    ensure!(users.len() == found.len(), "{} of {} crates say what they use", users.len(), found.len());
    Ok(())
}

#[test]
fn the_list_of_crates_is_that_of_the_library() {
    output(&mut script("sbom"));
    let path = repository().join(format!("target/packages/snowflake_pg-{VERSION}.cdx.json"));
    let text = fs::read_to_string(path).expect("just written");
    let mut tree = command("cargo");
    tree.current_dir(repository()).args(["tree", "--locked", "--package=snowflake_pg", "--no-dedupe", "--prefix=none"]);
    let tree = output(tree.args(["--edges=normal,no-proc-macro", "--format={p}"]));
    check_crates(&text, &tree).unwrap();
    assert_caught(check_crates(&text, &format!("{tree}\nanother v1.0.0")), "differ in [\"another v1.0.0\"]");
    assert_caught(check_crates(&text.replacen("pkg:cargo/", "pkg:npm/", 3), &tree), "pkg:npm");
    assert_caught(check_crates(&text.replacen("\"expression\"", "\"name\"", 2), &tree), "has no licence");
    assert_caught(check_crates(&text.replace("\"specVersion\": \"1", "\"specVersion\": \"2"), &tree), "another format");
}

#[test]
fn the_distribution_for_pgxn_has_one_directory_with_its_description() {
    output(&mut script("pgxn"));
    let path = repository().join(format!("target/packages/snowflake_pg-{VERSION}.zip"));
    let listing = output(command("python3").args(["-m", "zipfile", "--list"]).arg(path));
    let names: Vec<&str> = listing.lines().skip(1).filter_map(|line| line.split(' ').next()).collect();
    let root = format!("snowflake_pg-{VERSION}/");
    assert!(names.iter().all(|name| name.starts_with(&root)), "{names:?}");
    for file in ["META.json", "Makefile", "README.md", "sql/snowflake_pg--0.1.0.sql"] {
        assert!(names.contains(&format!("{root}{file}").as_str()), "{file} is not in {names:?}");
    }
}

/// Checks the sums of a directory as a user does.
fn check_sums(dir: &Path) -> Result<(), String> {
    let mut sum = command("sha256sum");
    sum.args(["--check", "--strict", "--quiet", "SHA256SUMS"]).current_dir(dir);
    let output = sum.output().expect("sha256sum can be run");
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    Ok(())
}

#[test]
fn the_sums_are_those_of_all_files_and_a_changed_file_is_caught() {
    let scratch = Scratch::new("packages_sums");
    for name in ["a", "b c"] {
        fs::write(scratch.0.join(name), name).expect("a new directory can be written");
    }
    // The sums of an earlier run are not summed.
    for _ in 0..2 {
        output(script("sums").arg(&scratch.0));
    }
    let sums = fs::read_to_string(scratch.0.join("SHA256SUMS")).expect("just written");
    assert_eq!(sums.lines().map(|line| &line[66..]).collect::<Vec<_>>(), ["a", "b c"]);
    check_sums(&scratch.0).unwrap();
    fs::write(scratch.0.join("a"), "b").expect("just written");
    assert_caught(check_sums(&scratch.0), "a: FAILED");
}
