//! The parts of the library, and its exports: dependencies, the compiler, symbols.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use cluster::{Host, assert_caught, command, ensure, not_tested, repository, tool};

/// The output of a command that runs in the repository. On failure, its error output.
fn run(command: &mut Command) -> Result<String, String> {
    let output = command.current_dir(repository()).env("NO_COLOR", "1").output().expect("it is installed");
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}:\n{said}");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Fetches the crates of all platforms, so that a command works with `--offline`.
fn fetch() {
    run(command("cargo").args(["fetch", "--locked"])).unwrap();
}

/// `cargo deny`, which scripts/setup puts into target/tools/bin.
fn deny(config: &Path, what: &[&str]) -> Result<String, String> {
    run(tool("cargo-deny").args(["--locked", "--config"]).arg(config).args(what))
}

#[test]
fn every_dependency_may_be_linked_and_comes_once_from_where_it_should() {
    deny(&repository().join("deny.toml"), &["check", "bans", "licenses", "sources"]).unwrap();
}

#[test]
fn dependencies_that_are_not_allowed_are_caught() {
    let text = fs::read_to_string(repository().join("deny.toml")).expect("the configuration");
    let path = repository().join("target/deny.toml");
    for (was, is, what, outcome) in [
        ("\"MIT\", ", "", "licenses", "rejected"),
        ("    { crate = \"toml@0.5\"", "    # ", "bans", "duplicate"),
        (
            "unknown-registry = \"deny\"",
            "unknown-registry = \"deny\"\nallow-registry = []",
            "sources",
            "source-not-allowed",
        ),
    ] {
        assert!(text.contains(was), "{was}");
        fs::write(&path, text.replace(was, is)).expect("target/ can be written");
        assert_caught(deny(&path, &["check", what]).map(drop), outcome);
    }
}

#[test]
fn no_dependency_has_a_known_hole() {
    match deny(&repository().join("deny.toml"), &["check", "advisories"]) {
        Err(said) if said.contains("failed to fetch advisory database") => {
            not_tested("the database of advisories cannot be reached");
        }
        checked => drop(checked.unwrap()),
    }
}

/// An entry of the database of advisories about a vulnerability in pgrx.
const HOLE: &str = "```toml\n[advisory]\nid = \"RUSTSEC-2020-9999\"\npackage = \"pgrx\"\ndate = \"2020-01-01\"\n
[versions]\npatched = []\n```\n\n# A hole\n";

#[test]
fn a_known_hole_is_caught() {
    fetch();
    // The directory in which cargo-deny keeps the database that it has fetched.
    let fetched = repository().join("target/advisories/advisory-db-3157b0e258782691");
    let _ = fs::remove_dir_all(&fetched);
    fs::create_dir_all(fetched.join("crates/pgrx")).expect("target/ can be written");
    fs::write(fetched.join("crates/pgrx/RUSTSEC-2020-9999.md"), HOLE).expect("target/ can be written");
    for step in [
        &["init", "--quiet"][..],
        &["add", "--all"],
        &["-c", "user.name=test", "-c", "user.email=test@localhost", "commit", "--quiet", "--message=A hole"],
        &["fetch", "--quiet", "."],
    ] {
        run(command("git").arg("-C").arg(&fetched).args(step)).unwrap();
    }
    let text = fs::read_to_string(repository().join("deny.toml")).expect("the configuration");
    let database = format!("[advisories]\ndb-path = {:?}", repository().join("target/advisories"));
    let path = repository().join("target/deny_hole.toml");
    fs::write(&path, text.replace("[advisories]", &database)).expect("target/");
    assert_caught(deny(&path, &["--offline", "check", "advisories"]).map(drop), "vulnerability");
}

#[test]
fn the_versions_of_dependencies_are_kept() {
    fetch();
    run(command("cargo").args(["metadata", "--locked", "--offline", "--format-version=1"])).unwrap();
}

#[test]
fn the_oldest_rust_that_is_promised_builds_it() {
    let minimum = env!("CARGO_PKG_RUST_VERSION");
    for page in ["README.md", "CONTRIBUTING.md"] {
        let text = fs::read_to_string(repository().join(page)).expect("a page can be read");
        assert!(text.contains(&format!("Rust {minimum}")), "{page} does not name Rust {minimum}");
    }
    let used = run(command("rustc").arg("--version")).unwrap();
    if !used.starts_with(&format!("rustc {minimum}.")) {
        not_tested(&format!("this is {used}, which says nothing of Rust {minimum}"));
    }
}

/// The names that PostgreSQL looks up: the magic block, the initialization, the background workers, and each function of the
/// script with its calling convention.
fn wanted(script: &str) -> BTreeSet<String> {
    let workers = ["snowflake_pg_keep_grant", "snowflake_pg_keep_mark", "snowflake_pg_watch_primary"];
    let mut names: BTreeSet<String> =
        ["Pg_magic_func", "_PG_init"].into_iter().chain(workers).map(String::from).collect();
    for part in script.split("'MODULE_PATHNAME', '").skip(1) {
        let function = part.split('\'').next().expect("a name");
        names.extend([function.to_string(), format!("pg_finfo_{function}")]);
    }
    names
}

/// Whether a library exports the symbols that PostgreSQL needs, and no others.
fn check_exports(library: &Path, wanted: &BTreeSet<String>) -> Result<(), String> {
    let listed = run(command("nm").args(["--dynamic", "--defined-only", "--format=just-symbols"]).arg(library))?;
    let exported: BTreeSet<String> = listed.lines().map(String::from).collect();
    let missing: Vec<_> = wanted.difference(&exported).collect();
    let more: Vec<_> = exported.difference(wanted).collect();
    ensure!(missing.is_empty() && more.is_empty(), "exports lack {missing:?} and have {more:?}");
    Ok(())
}

#[test]
fn the_library_exports_what_postgresql_needs_and_nothing_else() {
    let postgresql = Host::get().installation();
    let script = postgresql.extensions.join(concat!("snowflake_pg--", env!("CARGO_PKG_VERSION"), ".sql"));
    let mut wanted = wanted(&fs::read_to_string(script).expect("the extension is installed"));
    assert!(wanted.len() > 60, "{wanted:?}");
    let library = postgresql.libraries.join("snowflake_pg.so");
    check_exports(&library, &wanted).unwrap();
    // Missing symbols and additional symbols are both noticed.
    wanted.insert("another".into());
    assert_caught(check_exports(&library, &wanted), "exports lack [\"another\"] and have []");
    wanted.remove("another");
    wanted.remove("_PG_init");
    assert_caught(check_exports(&library, &wanted), "exports lack [] and have [\"_PG_init\"]");
}
