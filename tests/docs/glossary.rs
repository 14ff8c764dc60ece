//! The glossary has an entry for each term that a page prints in italics, and for each term in italics of its own entries.

use std::collections::BTreeSet;

use cluster::{assert_caught, ensure, page, texts_of};

const GLOSSARY: &str = "docs/glossary.md";

/// The terms that the glossary explains, without the names in code and in parentheses.
fn entries(glossary: &str) -> BTreeSet<String> {
    let rows = glossary.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let terms = rows.flat_map(|term| term.split(", ")).map(|term| term.split(" (").next().unwrap_or(term));
    terms.map(str::to_lowercase).collect()
}

/// The texts in italics of a page, outside of code.
fn italics(page: &str) -> Vec<String> {
    let (mut found, mut in_block) = (Vec::new(), false);
    // A term can continue on the next line.
    let mut prose = String::new();
    for line in page.lines() {
        in_block ^= line.trim_start().starts_with("```");
        if !in_block {
            prose.push_str(line);
            prose.push('\n');
        }
    }
    for paragraph in prose.split("\n\n") {
        let text: String = paragraph.split('`').step_by(2).collect::<String>().replace("**", "").replace('\n', " ");
        // A single letter is a variable of a formula.
        let begins = |rest: &str| rest.starts_with(char::is_alphabetic) && rest.len() > 1;
        let mut rest = text.as_str();
        while let Some((_, after)) = rest.split_once('*') {
            let term = after.split_once('*').filter(|(term, _)| begins(term) && term.ends_with(char::is_alphabetic));
            if let Some((term, after)) = term {
                found.push(term.to_lowercase());
                rest = after;
            } else {
                rest = after;
            }
        }
    }
    found
}

/// Whether the glossary explains each term. A term in the text can be in the plural, or be a form of a verb.
fn check(glossary: &str, pages: &[(String, String)]) -> Result<(), String> {
    let known = entries(glossary);
    ensure!(known.len() > 60, "{} terms", known.len());
    let forms =
        [("", ""), ("s", ""), ("es", "e"), ("d", ""), ("ed", ""), ("drawn", "draw"), ("spare", "spare worker id")];
    for (path, text) in pages {
        for term in italics(text) {
            let explained = forms
                .iter()
                .any(|(end, base)| term.strip_suffix(end).is_some_and(|stem| known.contains(&format!("{stem}{base}"))));
            ensure!(explained || term == "italics", "{path} has *{term}*, which {GLOSSARY} does not explain");
        }
    }
    Ok(())
}

fn pages() -> Vec<(String, String)> {
    let texts = texts_of(&["docs", "README.md"], ".md").into_iter();
    texts.map(|(path, text)| (path.display().to_string(), text)).collect()
}

#[test]
fn every_term_in_italics_is_explained() {
    check(&page(GLOSSARY), &pages()).unwrap();
}

#[test]
fn a_term_that_is_not_explained_is_caught() {
    let with = |text: &str| [("docs/page.md".to_string(), text.to_string())];
    let check = |text: &str| check(&page(GLOSSARY), &with(text));
    check("A *tag* and\n*high-water\nmarks* of `a * b` and **bold** in\n```\n*code*\n```\n").unwrap();
    assert_caught(check("A *quorum* decides."), "*quorum*");
    assert_caught(check("A *two\nphases* rule."), "*two phases*");
}
