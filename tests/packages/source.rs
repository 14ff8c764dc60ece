//! The source package for Debian: it contains everything that a build without network needs, and nothing of the machine that made it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cluster::{Scratch, assert_caught, command, ensure, output, repository, supported, thorough, typed};
use serde_json::Value;

use crate::build::VERSION;
use crate::check;

/// What a crate contains of which only the manifest is used, because it is for a different platform.
const PRUNED: [&str; 3] = [".cargo-checksum.json", "Cargo.toml", "src"];

/// Crates that no build on Linux uses.
const FOREIGN: [&str; 2] = ["js-sys", "windows-sys"];

/// The unpacked source package, as `dpkg-source` unpacks it for a build.
fn unpacked(scratch: &Scratch) -> PathBuf {
    output(&mut command(repository().join("scripts/source")));
    let tree = scratch.0.join("tree");
    output(command("dpkg-source").args(["--quiet", "--no-check", "--extract"]).arg(description()).arg(&tree));
    tree
}

/// The file that describes the source package.
fn description() -> PathBuf {
    repository().join(format!("target/packages/snowflake-pg_{VERSION}-1.dsc"))
}

/// The names in a directory.
fn names(dir: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    entries.map(|entry| entry.expect("a readable directory").file_name().to_string_lossy().into_owned()).collect()
}

/// Whether the package has the sources that it needs, and not the tests and tools.
fn check_sources(tree: &Path) -> Result<(), String> {
    for file in ["debian/control", "debian/rules", "debian/tests/control", "src/lib.rs", "Cargo.lock"] {
        ensure!(tree.join(file).is_file(), "{file} is missing");
    }
    for dir in ["bench", "demo", "decoder", "crates/cluster", "crates/flake/fuzz", "tests/packages", "target", ".git"] {
        ensure!(!tree.join(dir).exists(), "{dir} is not needed");
    }
    let control = fs::read_to_string(tree.join("debian/control")).expect("it is a file");
    for major in supported() {
        ensure!(control.contains(&format!("Package: postgresql-{major}-snowflake-pg\n")), "no package for {major}");
    }
    Ok(())
}

/// Whether debian/copyright has a paragraph for each crate, and no other.
fn check_copyright(tree: &Path) -> Result<(), String> {
    let text = fs::read_to_string(tree.join("debian/copyright")).expect("it is a file");
    let named = text.lines().filter_map(|line| line.strip_prefix("Files: vendor/")?.strip_suffix("/*"));
    check::same(named.map(String::from), names(&tree.join("vendor")).into_iter().collect())
}

/// Whether crates for other platforms are there without their contents, and no crate contains a binary.
fn check_pruned(tree: &Path) -> Result<(), String> {
    let crates = names(&tree.join("vendor"));
    for name in FOREIGN {
        let found: Vec<&String> =
            crates.iter().filter(|versioned| versioned.starts_with(&format!("{name}-"))).collect();
        ensure!(!found.is_empty(), "cargo needs the manifest of {name}");
        for versioned in found {
            let files = names(&tree.join("vendor").join(versioned));
            ensure!(files == PRUNED.map(String::from).into(), "{versioned} has {files:?}");
        }
    }
    let binary =
        ["-name", "*.dll", "-o", "-name", "*.exe", "-o", "-name", "*.lib", "-o", "-name", "*.a", "-o", "-name", "*.so"];
    let binaries = output(command("find").arg(tree).args(binary));
    ensure!(binaries.is_empty(), "there are binaries:\n{binaries}");
    Ok(())
}

/// Whether each file in the lists of checksums is there, also after the package is cleaned, which is the first step of a build.
fn check_checksums(tree: &Path) -> Result<(), String> {
    for name in names(&tree.join("vendor")) {
        let dir = tree.join("vendor").join(&name);
        let list = fs::read_to_string(dir.join(".cargo-checksum.json")).map_err(|error| format!("{name}: {error}"))?;
        let list: Value = serde_json::from_str(&list).map_err(|error| format!("{name}: {error}"))?;
        let files = list["files"].as_object().ok_or(format!("{name} has no list"))?;
        let missing = files.keys().find(|file| !dir.join(file).is_file());
        ensure!(missing.is_none(), "{name} lacks {missing:?}");
    }
    Ok(())
}

/// Whether cargo finds all crates in the package, without network and without those that it has downloaded on this machine.
fn check_complete(tree: &Path, empty: &Path) -> Result<(), String> {
    let mut cargo = command("cargo");
    cargo.current_dir(tree).env("CARGO_HOME", empty).args(["metadata", "--offline", "--locked", "--format-version=1"]);
    typed(cargo, "").map(drop)
}

/// Whether no file has a path of this machine.
fn check_paths(tree: &Path) -> Result<(), String> {
    let home = std::env::var("CARGO_HOME").or_else(|_| std::env::var("HOME").map(|home| format!("{home}/.cargo")));
    let paths = [repository().display().to_string(), home.expect("cargo has a directory")];
    let mut grep: Command = command("grep");
    grep.args(["--recursive", "--files-with-matches", "--fixed-strings"]);
    for path in &paths {
        grep.args(["-e", path]);
    }
    let found = grep.arg(tree).output().expect("grep can be run");
    let found = String::from_utf8_lossy(&found.stdout).into_owned();
    ensure!(found.is_empty(), "there is a path of this machine in\n{found}");
    Ok(())
}

/// Making the package takes more than a minute, and lintian needs as long to read it.
#[test]
fn the_source_package_can_be_built_without_network_and_says_nothing_of_this_machine() {
    if !thorough() {
        return;
    }
    let scratch = Scratch::new("packages_source");
    let tree = unpacked(&scratch);
    let empty = scratch.0.join("empty");
    output(command("make").args(["--quiet", "--file=debian/rules", "override_dh_clean"]).current_dir(&tree));
    check_sources(&tree).unwrap();
    check_copyright(&tree).unwrap();
    check_pruned(&tree).unwrap();
    check_checksums(&tree).unwrap();
    check_complete(&tree, &empty).unwrap();
    check_paths(&tree).unwrap();
    check::lintian(&description()).unwrap();

    // Each check fails if the package is spoilt.
    let pgrx =
        names(&tree.join("vendor")).into_iter().find(|name| name.starts_with("pgrx-0")).expect("the library uses it");
    let spoil = |path: &str, text: &str| fs::write(tree.join(path), text).expect("the copy can be written");
    let settings = fs::read_to_string(tree.join(".cargo/config.toml")).expect("settings");
    spoil(".cargo/config.toml", settings.split("\n[source.").next().expect("a text"));
    assert_caught(check_complete(&tree, &empty), "no matching package");
    spoil(".cargo/config.toml", &settings);
    spoil("src/machine.rs", &format!("// {}/src\n", repository().display()));
    assert_caught(check_paths(&tree), "src/machine.rs");
    spoil(&format!("vendor/{pgrx}/helper.dll"), "");
    assert_caught(check_pruned(&tree), "helper.dll");
    fs::remove_file(tree.join(format!("vendor/{pgrx}/Cargo.toml.orig"))).expect("a crate has its own manifest");
    assert_caught(check_checksums(&tree), &format!("{pgrx} lacks Some(\"Cargo.toml.orig\")"));
    fs::create_dir(tree.join("vendor/another-1.0.0")).expect("the copy can be written");
    assert_caught(check_copyright(&tree), "another-1.0.0");
    fs::remove_file(tree.join("debian/tests/control")).expect("it was there");
    assert_caught(check_sources(&tree), "debian/tests/control is missing");
}
