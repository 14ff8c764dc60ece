//! `make test` runs all tests that can run, and reports every failure.

use std::fs;

use cluster::{command, not_tested};

use crate::environment::NONSENSE;
use crate::installers::Scripts;

/// The end of the output of cargo-nextest if tests fail.
const FAILURES: &str = r"     Summary [   9.010s] 3 tests run: 1 passed, 2 failed, 0 skipped
        FAIL [   0.004s] (1/3) tests::mark start::one
     TIMEOUT [   9.004s] (3/3) tests::clock steps::two
error: test run failed";

/// Runs a copy of `scripts/test` with nonsense in the environment. The programs it calls are stubs that record the call, and fail
/// if the call contains one of the words in `fails`. Returns the output, the calls, and whether the script succeeded.
fn try_script(name: &str, parts: &[&str], fails: &str) -> (String, String, bool) {
    let scripts = Scripts::new(name, &["scripts/test"], |text| text);
    let dir = &scripts.0.0;
    fs::create_dir(dir.join("bin")).expect("a new directory can be written");
    let calls = dir.join("calls");
    let stub = format!(
        "#!/bin/sh\necho \"$(basename \"$0\") $PG $*${{THOROUGH:+ thorough}}\" >>'{calls}'\nenv | grep -i nonsense >>'{calls}'
         case $* in *--no-fail-fast*) echo 'of this machine' >>\"$NOT_TESTED\"; esac
         for word in {fails}; do case \"$(basename \"$0\") $*\" in *\"$word\"*) echo '{FAILURES}' >&2; exit 100; esac; done\n",
        calls = calls.display()
    );
    for part in ["bin/cargo", "scripts/setup", "scripts/install", "scripts/faults", "scripts/lint"] {
        scripts.write(part, &stub);
    }
    // Every package can be had, so the engines are tested.
    scripts.write("bin/apt-cache", "#!/bin/sh\n");
    let mut script = command(dir.join("scripts/test"));
    script.args(parts).envs(NONSENSE).env("CARGO_HOME", dir);
    script.env("PG", "15").env("ALSO", "16 18").env("THOROUGH", "1").env_remove("PG_CONFIG");
    let output = script.output().expect("bash is installed");
    let printed = format!("{}{}", String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
    let called = fs::read_to_string(calls).unwrap_or_default();
    (printed, called, output.status.success())
}

const ALL: [&str; 4] = ["lint", "core", "interleavings", "all"];

#[test]
fn every_part_runs_to_its_end_and_every_failure_is_told_of() {
    let (printed, all, succeeded) = try_script("script_ok", &ALL, "");
    assert!(succeeded && printed.ends_with("\nnot tested: of this machine\ntest: ok\n"), "{printed}");
    assert!(!all.contains("onsense"), "the caller's environment reaches a program:\n{all}");

    // Only the oldest and the newest version run all rounds.
    let runs: Vec<&str> =
        all.lines().filter(|call| call.contains("--no-fail-fast") && call.contains("-p tests")).collect();
    let thorough: Vec<bool> = runs.iter().map(|run| run.ends_with(" thorough")).collect();
    assert_eq!(thorough, [true, false, true], "{runs:?}");

    // Everything that can run does, and each failure is named.
    let (printed, called, succeeded) = try_script("script_failing", &ALL, "--no-fail-fast lint");
    assert!(!succeeded && printed.ends_with("\ntest: FAILED\n"), "{printed}");
    assert_eq!(called, all);
    let versions = ["15", "16", "18"].map(|version| format!("PostgreSQL {version}"));
    let told: Vec<&str> = printed.lines().filter_map(|line| line.strip_prefix("failed: ")).collect();
    // Clippy runs only for the oldest and the newest version.
    let mut expected: Vec<String> = [&versions[0], &versions[2]].map(|on| format!("lint for {on}")).into();
    for step in versions.iter().map(String::as_str).chain(["core", "interleavings"]) {
        expected.extend(["tests::mark start::one", "tests::clock steps::two"].map(|test| format!("{step}: {test}")));
    }
    let sorted = |mut lines: Vec<String>| {
        lines.sort();
        lines
    };
    assert_eq!(sorted(told.iter().map(ToString::to_string).collect()), sorted(expected), "{printed}");

    // One failure among steps that succeed.
    let (printed, called, succeeded) = try_script("script_one", &ALL, "'--no-fail-fast -p flake --test loom'");
    assert!(!succeeded && printed.ends_with("\ntest: FAILED\n"), "{printed}");
    assert_eq!(called, all);
    assert_eq!(printed.matches("failed: interleavings: ").count(), 2, "{printed}");
    assert_eq!(printed.matches("failed: ").count(), 2, "{printed}");

    // No test runs if the setup, the installation or the build of the tests fails.
    for (name, fails) in [("script_setup", "setup"), ("script_install", "install"), ("script_build", "--no-run")] {
        let (printed, called, succeeded) = try_script(name, &ALL, fails);
        assert!(!succeeded && printed.ends_with("\ntest: FAILED\n"), "{printed}");
        assert!(!called.contains("--no-fail-fast"), "{fails} failed, and tests ran:\n{called}");
    }
}

#[test]
fn later_versions_are_built_while_the_engines_wait() {
    let (printed, called, succeeded) = try_script("script_engines", &["engines"], "");
    assert!(succeeded, "{printed}");
    if !called.contains("--profile engines") {
        return not_tested("the engines need Debian's PostgreSQL 15");
    }
    let tests =
        |version: &str| called.find(&format!("cargo {version} nextest run --cargo-quiet --no-run --profile versions"));
    for version in ["16", "18"] {
        let first = called.find(&format!("install {version} ")).expect("the library is built");
        assert!(tests(version).is_some_and(|tests| first < tests), "{called}");
        assert_eq!(called.matches(&format!("install {version} ")).count(), 2, "{called}");
    }
}

#[test]
fn the_surface_needs_no_library_with_faults() {
    let (printed, called, succeeded) = try_script("script_check", &["lint", "core", "surface"], "");
    assert!(succeeded, "{printed}");
    assert!(called.contains("nextest run --cargo-quiet --no-fail-fast --profile surface"), "{called}");
    assert!(!called.contains("faults") && !called.contains("loom"), "{called}");
}

#[test]
fn clients_are_installed_before_their_tests_run() {
    let (printed, called, succeeded) = try_script("script_clients", &["clients"], "");
    assert!(succeeded, "{printed}");
    let place = |call: &str| called.find(call).unwrap_or_else(|| panic!("no {call}:\n{called}"));
    let run = place("nextest run --cargo-quiet --no-fail-fast --profile clients");
    assert!(place("setup 15 clients") < run, "{called}");

    let (printed, called, succeeded) = try_script("script_no_clients", &["clients"], "'setup clients'");
    assert!(!succeeded && printed.ends_with("\ntest: FAILED\n"), "{printed}");
    assert!(!called.contains("--profile clients"), "tests of clients run without the clients:\n{called}");
}

#[test]
fn what_is_built_beside_the_engines_runs_once_and_its_failures_are_told_of() {
    let of = |called: &str, profile: &str| {
        called.lines().filter(|call| call.contains(&format!("--no-fail-fast --profile {profile} "))).count()
    };
    let parts = ["servers", "builds", "engines", "clients"];
    let (printed, called, succeeded) = try_script("script_beside", &parts, "");
    assert!(succeeded && printed.ends_with("\ntest: ok\n"), "{printed}");
    for profile in parts {
        assert_eq!(of(&called, profile), 1, "{profile}: {called}");
    }
    let (printed, ..) = try_script("script_beside_failing", &parts, "'--no-fail-fast --profile builds'");
    assert!(printed.ends_with("\ntest: FAILED\n"), "{printed}");
    assert_eq!(printed.matches("failed: PostgreSQL 15: ").count(), 2, "{printed}");
    assert_eq!(printed.matches("failed: ").count(), 2, "{printed}");
    // The tests cannot be built.
    let (printed, called, _) = try_script("script_beside_unbuilt", &parts, "'--no-run --profile builds'");
    assert!(printed.contains("\nfailed: builds\n"), "{printed}");
    assert_eq!((of(&called, "builds"), of(&called, "engines")), (0, 1), "{called}");
    // Without engines, they run as any other part.
    let (printed, called, _) = try_script("script_builds", &parts[..2], "'--no-fail-fast --profile builds'");
    assert_eq!(printed.matches("failed: PostgreSQL 15: ").count(), 2, "{printed}");
    assert_eq!(of(&called, "builds"), 1, "{called}");
}
