//! Each row of docs/hazards.md names tests that exist.

use std::collections::BTreeSet;
use std::fs;

use cluster::{assert_caught, ensure, page, repository};

use super::{HazardRow, PAGE, rows};

/// Returns the names of the tests in a source file, except ignored tests.
fn tests_of(source: &str) -> BTreeSet<&str> {
    fn name(rest: &str) -> Option<&str> {
        let after_comments = rest.lines().map(str::trim).find(|line| !line.starts_with("//"))?;
        Some(after_comments.strip_prefix("fn ")?.split_once('(')?.0)
    }
    source.split("#[test]\n").skip(1).filter_map(name).collect()
}

/// Checks that every row names a file, and that every file contains the tests that are named.
fn check_tests(page: &str) -> Result<(), String> {
    let rows = rows(page)?;
    ensure!(rows.len() > 80, "{PAGE} has only {} rows", rows.len());
    for HazardRow { claim, files, .. } in &rows {
        ensure!(!files.is_empty(), "no test stands beside {claim:?}");
        for (file, functions) in files {
            let Ok(text) = fs::read_to_string(repository().join(file)) else {
                return Err(format!("there is no file {file}, which stands beside {claim:?}"));
            };
            let tests = tests_of(&text);
            ensure!(!file.ends_with(".rs") || !functions.is_empty(), "no function of {file} stands beside {claim:?}");
            if let Some(missing) = functions.iter().find(|function| !tests.contains(function.as_str())) {
                return Err(format!("{file} has no test {missing}, which stands beside {claim:?}"));
            }
        }
    }
    Ok(())
}

#[test]
fn every_row_names_tests_that_exist() {
    check_tests(&page(PAGE)).unwrap();
}

#[test]
fn a_row_without_its_test_is_caught() {
    let page = page(PAGE);
    let with = |tests: &str| format!("{page}\n| hazard | shown by |\n| --- | --- |\n| A hazard | {tests} |\n");
    check_tests(&with("`tests/docs/hazards/tests.rs`: `a_row_without_its_test_is_caught`")).unwrap();
    for (tests, reason) in [
        ("", "no test stands beside \"A hazard\""),
        ("`every_row_names_tests_that_exist`", "is named before any file"),
        ("`tests/docs/hazards/tests.rs`", "no function of tests/docs/hazards/tests.rs"),
        ("`tests/docs/nothing.rs`: `check_tests`", "there is no file tests/docs/nothing.rs"),
        ("`tests/docs/hazards/tests.rs`: `a_row_that_was_renamed`", "has no test a_row_that_was_renamed"),
        // This function is not a test.
        ("`tests/docs/hazards/tests.rs`: `check_tests`", "has no test check_tests"),
    ] {
        assert_caught(check_tests(&with(tests)), reason);
    }
    assert_eq!(tests_of("#[test]\n#[ignore]\nfn one() {}\n#[test]\n// Why.\nfn two() {}\n"), BTreeSet::from(["two"]));
}
