//! The glossary has an entry for each term that a page prints in italics, and for each term in italics of its own entries.

use std::collections::BTreeSet;
use std::path::PathBuf;

use cluster::{assert_caught, ensure, page, texts_of};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

const GLOSSARY: &str = "docs/glossary.md";

/// The terms that the glossary explains, without the names in code and in parentheses.
fn entries(glossary: &str) -> BTreeSet<String> {
    let rows = glossary.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let terms = rows.flat_map(|term| term.split(", ")).map(|term| term.split(" (").next().unwrap_or(term));
    terms.map(str::to_lowercase).collect()
}

/// The texts in italics of a page, outside of code.
fn italics(page: &str) -> Vec<String> {
    let (mut found, mut term): (Vec<String>, Option<String>) = (Vec::new(), None);
    for event in Parser::new_ext(page, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Emphasis) => term = Some(String::new()),
            Event::End(TagEnd::Emphasis) => found.extend(term.take().map(|term| term.to_lowercase())),
            Event::Text(text) => term.iter_mut().for_each(|term| term.push_str(&text)),
            Event::SoftBreak => term.iter_mut().for_each(|term| term.push(' ')),
            _ => {}
        }
    }
    // A single letter is a variable of a formula.
    found.retain(|term| term.len() > 1 && term.starts_with(char::is_alphabetic) && term.ends_with(char::is_alphabetic));
    found
}

/// Whether the glossary explains each term. A term in the text can be in the plural, or be a form of a verb.
fn check(glossary: &str, pages: &[(PathBuf, String)]) -> Result<(), String> {
    let known = entries(glossary);
    ensure!(known.len() > 60, "{} terms", known.len());
    let forms =
        [("", ""), ("s", ""), ("es", "e"), ("d", ""), ("ed", ""), ("drawn", "draw"), ("spare", "spare worker id")];
    for (path, text) in pages {
        for term in italics(text) {
            let is_form = |(end, base): &(&str, &str)| {
                term.strip_suffix(end).is_some_and(|stem| known.contains(&format!("{stem}{base}")))
            };
            let explained = term == "italics" || forms.iter().any(is_form);
            ensure!(explained, "{} has *{term}*, which {GLOSSARY} does not explain", path.display());
        }
    }
    Ok(())
}

#[test]
fn every_term_in_italics_is_explained() {
    check(&page(GLOSSARY), &texts_of(&["docs", "README.md"], ".md")).unwrap();
}

#[test]
fn a_term_that_is_not_explained_is_caught() {
    let check = |text: &str| check(&page(GLOSSARY), &[("docs/page.md".into(), text.into())]);
    check("A *tag* and\n*high-water\nmarks* of `a * b` and **bold** in\n```\n*code*\n```\n").unwrap();
    assert_caught(check("A *quorum* decides."), "*quorum*");
    assert_caught(check("A *two\nphases* rule."), "*two phases*");
}
