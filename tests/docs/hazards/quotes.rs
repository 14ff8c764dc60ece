//! docs/hazards.md quotes every promise of README.md and docs/guarantees.md, and these pages contain everything that it quotes.

use std::collections::BTreeMap;

use cluster::{assert_caught, ensure, page};

use super::{PAGE, rows};

const README: &str = "README.md";
const INSTALLING: &str = "docs/installing.md";
const GUARANTEES: &str = "docs/guarantees.md";

/// The section whose table contains every promise.
const PROMISES: &str = "Promises";

/// The sections whose first column contains quotations, and the pages that they quote.
const QUOTING: [(&str, &[&str]); 3] =
    [(PROMISES, &[README, GUARANTEES]), ("First steps", &[README, INSTALLING]), ("Limits", &[GUARANTEES])];

/// The sections that make promises, each with its page. An empty section name stands for the introduction.
const PROMISING: [(&str, &str); 3] = [(README, ""), (README, "Guarantees"), (GUARANTEES, "Guarantees")];

/// What separates quotations in one cell.
const AND: &str = "<br>";

/// The text of each page, by its path.
type Pages = BTreeMap<&'static str, String>;

/// Returns the pages that are quoted.
fn quoted() -> Pages {
    [README, INSTALLING, GUARANTEES].map(|path| (path, page(path))).into()
}

/// Returns a text without its markup, in one line.
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

/// Returns the sentences of a section, including the sentences of its lists. Tables, blocks and sentences that only introduce a
/// list are left out.
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

/// Checks that the pages contain everything that is quoted, and that everything they promise is quoted.
fn check_promises(hazards: &str, pages: &Pages) -> Result<(), String> {
    let rows = rows(hazards)?;
    // A quotation may continue from one paragraph to the next, or from one list item to the next.
    let text = |path: &str| {
        let lines = pages[path].lines().map(|line| line.trim_start().trim_start_matches("- "));
        plain(&lines.collect::<Vec<_>>().join(" "))
    };
    let mut promises: Vec<String> = Vec::new();
    for (section, paths) in QUOTING {
        let texts: Vec<String> = paths.iter().map(|path| text(path)).collect();
        let quoting = rows.iter().filter(|row| row.section == section);
        let quotations: Vec<String> = quoting.flat_map(|row| row.claim.split(AND)).map(plain).collect();
        ensure!(!quotations.is_empty(), "{PAGE} has no section {section:?}");
        for quotation in &quotations {
            let said = !quotation.is_empty() && texts.iter().any(|text| text.contains(quotation));
            ensure!(said, "no page of {paths:?} says {quotation:?}");
        }
        if section == PROMISES {
            promises = quotations;
        }
    }
    for (path, section) in PROMISING {
        let sentences = sentences(&pages[path], section);
        ensure!(sentences.len() > 1, "{path} has no section {section:?}");
        if let Some(missing) = sentences.iter().find(|sentence| !promises.iter().any(|row| row.contains(*sentence))) {
            return Err(format!("no row quotes {missing:?} of {path}"));
        }
    }
    Ok(())
}

#[test]
fn every_promise_has_a_row() {
    check_promises(&page(PAGE), &quoted()).unwrap();
}

#[test]
fn a_promise_without_a_row_is_caught() {
    let (hazards, pages) = (page(PAGE), quoted());
    let (begin, prime) = ("\n## Guarantees\n", "\n## Guarantees\n\nIDs are prime.\n");
    for (path, was, is, reason) in [
        (GUARANTEES, begin, prime, "no row quotes \"IDs are prime.\" of docs/guarantees.md"),
        (GUARANTEES, begin, "\n## Guarantees\n\n- **IDs** are\n  `prime`;\n", "no row quotes \"IDs are prime;\""),
        (GUARANTEES, "IDs are positive", "IDs are never 0", "says \"IDs are positive"),
        (GUARANTEES, begin, "\n## Other promises\n", "docs/guarantees.md has no section \"Guarantees\""),
        (GUARANTEES, "The mark is not transferred", "The mark is transferred", "says \"The mark is not transferred"),
        (README, begin, "\n## Other promises\n", "README.md has no section \"Guarantees\""),
        (README, begin, prime, "no row quotes \"IDs are prime.\" of README.md"),
        (README, "\n![An ID", "\nIDs are prime.\n\n![An ID", "no row quotes \"IDs are prime.\" of README.md"),
        (INSTALLING, "one background worker", "no worker", "says \"The extension runs one background worker"),
    ] {
        assert!(pages[path].contains(was), "{was}");
        let mut changed = pages.clone();
        changed.insert(path, pages[path].replacen(was, is, 1));
        assert_caught(check_promises(&hazards, &changed), reason);
    }
    let headless = hazards.replacen("\n### First steps\n", "\n### Last steps\n", 1);
    assert_caught(check_promises(&headless, &pages), "has no section \"First steps\"");
}
