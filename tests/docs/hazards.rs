//! docs/hazards.md names tests that exist, and has a row for each promise, function and setting.

mod names;
mod quotes;

use std::collections::BTreeSet;
use std::fs;

use cluster::{assert_caught, ensure, page, repository};

/// The path of the page.
const PAGE: &str = "docs/hazards.md";

/// A row of a table.
struct HazardRow {
    /// The heading above the table.
    section: String,
    /// The first column.
    claim: String,
    /// The files in the last column, each with the functions named after it.
    files: Vec<(String, Vec<String>)>,
}

/// Returns all rows of all tables on the page.
fn rows(page: &str) -> Result<Vec<HazardRow>, String> {
    let (mut section, mut in_table, mut found) = (String::new(), false, Vec::new());
    for line in page.lines() {
        if line.starts_with('#') {
            section = line.trim_start_matches('#').trim().into();
        }
        if !line.starts_with('|') {
            in_table = false;
        } else if line.starts_with("| ---") {
            in_table = true;
        } else if in_table {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let mut files: Vec<(String, Vec<String>)> = Vec::new();
            for name in cells[cells.len() - 1].split('`').skip(1).step_by(2) {
                match (name.contains('/'), files.last_mut()) {
                    (true, _) => files.push((name.into(), Vec::new())),
                    (false, Some((_, functions))) => functions.push(name.into()),
                    (false, None) => return Err(format!("{name} is named before any file: {line}")),
                }
            }
            found.push(HazardRow { section: section.clone(), claim: cells[0].into(), files });
        }
    }
    Ok(found)
}

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
    check_tests(&with("`tests/docs/hazards.rs`: `a_row_without_its_test_is_caught`")).unwrap();
    for (tests, reason) in [
        ("", "no test stands beside \"A hazard\""),
        ("`every_row_names_tests_that_exist`", "is named before any file"),
        ("`tests/docs/hazards.rs`", "no function of tests/docs/hazards.rs"),
        ("`tests/docs/nothing.rs`: `check_tests`", "there is no file tests/docs/nothing.rs"),
        ("`tests/docs/hazards.rs`: `a_row_that_was_renamed`", "has no test a_row_that_was_renamed"),
        // This function is not a test.
        ("`tests/docs/hazards.rs`: `check_tests`", "has no test check_tests"),
    ] {
        assert_caught(check_tests(&with(tests)), reason);
    }
    assert_eq!(tests_of("#[test]\n#[ignore]\nfn one() {}\n#[test]\n// Why.\nfn two() {}\n"), BTreeSet::from(["two"]));
}
