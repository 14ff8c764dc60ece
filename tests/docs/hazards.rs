//! docs/hazards.md names tests that exist, and has a row for each promise of the README.

use std::collections::BTreeSet;
use std::fs;

use cluster::{assert_caught, ensure, page, repository};

/// The page.
const PAGE: &str = "docs/hazards.md";

/// The section whose table has every promise.
const PROMISES: &str = "Promises";

/// The sections whose first column quotes the README.
const QUOTING: [&str; 3] = [PROMISES, "Functions and settings", "Limits"];

/// The sections of the README that promise; "" is its introduction.
const PROMISING: [&str; 2] = ["", "Guarantees"];

/// A row of a table.
struct Row {
    /// The heading above the table.
    section: String,
    /// The first column.
    claim: String,
    /// The files of the last column, each with the functions named after it.
    files: Vec<(String, Vec<String>)>,
}

/// All rows of all tables.
fn rows(page: &str) -> Result<Vec<Row>, String> {
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
            found.push(Row { section: section.clone(), claim: cells[0].into(), files });
        }
    }
    Ok(found)
}

/// The names of a source file's tests, except those that are ignored.
fn tests_of(source: &str) -> BTreeSet<&str> {
    fn name(rest: &str) -> Option<&str> {
        let after_comments = rest.lines().map(str::trim).find(|line| !line.starts_with("//"))?;
        Some(after_comments.strip_prefix("fn ")?.split_once('(')?.0)
    }
    source.split("#[test]\n").skip(1).filter_map(name).collect()
}

/// Whether every row names a file and every file has the tests that are named.
fn check_tests(page: &str) -> Result<(), String> {
    let rows = rows(page)?;
    ensure!(rows.len() > 80, "{PAGE} has only {} rows", rows.len());
    for Row { claim, files, .. } in &rows {
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

/// A text without its markup, in one line.
fn plain(markdown: &str) -> String {
    let mut text = String::new();
    let mut rest = markdown;
    while let Some((before, link)) = rest.split_once("](") {
        text.push_str(before);
        rest = link.split_once(')').map_or("", |(_, after)| after);
    }
    text.push_str(rest);
    text.retain(|c| !"*`[]".contains(c));
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The sentences of a section, with those of its lists, but without tables, blocks, and what only leads to a list.
fn sentences(page: &str, section: &str) -> Vec<String> {
    let (mut here, mut in_block, mut paragraphs) = (String::new(), false, vec![String::new()]);
    for line in page.lines() {
        in_block ^= line.starts_with("```");
        match line.strip_prefix("## ") {
            Some(title) if !in_block => here = title.into(),
            _ => {}
        }
        let text = line.trim_start();
        let apart = text.is_empty() || ["#", "|", "![", "```"].iter().any(|begin| text.starts_with(begin));
        if in_block || here != section || apart {
            paragraphs.push(String::new());
        } else if let Some(item) = text.strip_prefix("- ") {
            paragraphs.push(item.into());
        } else {
            paragraphs.last_mut().expect("a paragraph").push_str(&format!(" {text}"));
        }
    }
    let ends = |text: &str, at: usize| {
        text[..at].trim_end_matches(')').ends_with('.')
            && text[at + 1..].starts_with(|c: char| c == '(' || c.is_uppercase())
    };
    let mut found = Vec::new();
    for paragraph in paragraphs {
        let text = plain(&paragraph);
        let mut rest = text.as_str();
        while let Some((at, _)) = rest.match_indices(' ').find(|(at, _)| ends(rest, *at)) {
            found.push(rest[..at].to_string());
            rest = &rest[at + 1..];
        }
        found.push(rest.into());
    }
    found.retain(|sentence| !sentence.is_empty() && !sentence.ends_with(':'));
    found
}

/// Whether the README says what the page quotes, and the page quotes all that the README promises.
fn check_promises(page: &str, readme: &str) -> Result<(), String> {
    let rows = rows(page)?;
    // A quote may go on from a paragraph to the next, or from one item of a list.
    let said =
        plain(&readme.lines().map(|line| line.trim_start().trim_start_matches("- ")).collect::<Vec<_>>().join(" "));
    let quoted = |row: &&Row| QUOTING.contains(&row.section.as_str());
    for Row { claim, .. } in rows.iter().filter(quoted) {
        ensure!(said.contains(&plain(claim)), "the README does not say {claim:?}");
    }
    let promises: Vec<String> =
        rows.iter().filter(|row| row.section == PROMISES).map(|row| plain(&row.claim)).collect();
    for section in PROMISING {
        let sentences = sentences(readme, section);
        ensure!(sentences.len() > 2, "the README has no section {section:?}");
        if let Some(missing) = sentences.iter().find(|sentence| !promises.iter().any(|row| row.contains(*sentence))) {
            return Err(format!("no row quotes {missing:?}"));
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
        // A function that is no test.
        ("`tests/docs/hazards.rs`: `check_tests`", "has no test check_tests"),
    ] {
        assert_caught(check_tests(&with(tests)), reason);
    }
    assert_eq!(tests_of("#[test]\n#[ignore]\nfn one() {}\n#[test]\n// Why.\nfn two() {}\n"), BTreeSet::from(["two"]));
}

#[test]
fn every_promise_of_the_readme_has_a_row() {
    check_promises(&page(PAGE), &page("README.md")).unwrap();
}

#[test]
fn a_promise_without_a_row_is_caught() {
    let (rows, readme) = (page(PAGE), page("README.md"));
    let begin = "\n## Guarantees\n";
    for (was, is, reason) in [
        (begin, "\n## Guarantees\n\nIDs are prime.\n", "no row quotes \"IDs are prime.\""),
        (begin, "\n## Guarantees\n\n- **IDs** are\n  `prime`;\n", "no row quotes \"IDs are prime;\""),
        ("IDs are positive", "IDs are never 0", "the README does not say \"IDs are positive"),
        (begin, "\n## Other promises\n", "the README has no section \"Guarantees\""),
    ] {
        assert!(readme.contains(was), "{was}");
        assert_caught(check_promises(&rows, &readme.replacen(was, is, 1)), reason);
    }
}
