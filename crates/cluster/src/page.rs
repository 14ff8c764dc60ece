//! The pages of the manual, and their code blocks.

use std::fs;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag};

use crate::{ensure, repository};

/// Returns the text of a page of the repository.
pub fn page(path: &str) -> String {
    fs::read_to_string(repository().join(path)).unwrap_or_else(|e| panic!("{path} cannot be read: {e}"))
}

/// Returns the names of the pages for contributors, which are not installed: those in the last section of docs/README.md.
pub fn contributors_pages() -> Vec<String> {
    let index = page("docs/README.md");
    let (_, section) = index.split_once("\n## Contribute\n").expect("docs/README.md has a section for contributors");
    let links = section.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0));
    let pages: Vec<String> =
        links.filter(|link| link.ends_with(".md") && !link.contains('/')).map(String::from).collect();
    assert!(!pages.is_empty(), "docs/README.md has no page for contributors");
    pages
}

/// A fenced code block of a page.
pub struct CodeBlock {
    /// The heading above the block, as it is written.
    pub heading: String,
    /// The words after the fence.
    pub language: String,
    /// The code.
    pub text: String,
    /// True if nothing is between this block and the preceding block.
    pub follows: bool,
}

/// Returns all fenced code blocks of a page, in order.
pub fn code_blocks(page: &str) -> Vec<CodeBlock> {
    let mut found: Vec<CodeBlock> = Vec::new();
    let mut heading = "";
    // The end of the preceding block, or `None` before the first block of the page.
    let mut end = None;
    for (event, range) in Parser::new_ext(page, Options::ENABLE_TABLES).into_offset_iter() {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = page[range].trim_start_matches('#').trim(),
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) => {
                let follows = end.is_some_and(|end: usize| page[end..range.start].trim().is_empty());
                let (heading, language) = (heading.to_string(), language.to_string());
                found.push(CodeBlock { heading, language, text: String::new(), follows });
                end = Some(range.end);
            }
            Event::Text(text) if end.is_some_and(|end| range.start < end) => {
                found.last_mut().expect("an open block").text.push_str(&text);
            }
            _ => {}
        }
    }
    found
}

/// Returns a page's blocks with this language, in order.
pub fn blocks(page: &str, language: &str) -> Vec<String> {
    let all = code_blocks(page).into_iter();
    all.filter(|block| block.language == language).map(|block| block.text).collect()
}

/// A part of a page under a heading, with its blocks. A block is the word after the fence and the text.
pub struct Section {
    /// The heading.
    pub title: String,
    /// The blocks, in order.
    pub blocks: Vec<(String, String)>,
}

/// Returns the sections of a page that have blocks, in order.
pub fn sections(page: &str) -> Vec<Section> {
    let mut found: Vec<Section> = Vec::new();
    for CodeBlock { heading, language, text, .. } in code_blocks(page) {
        if found.last().is_none_or(|section| section.title != heading) {
            found.push(Section { title: heading, blocks: Vec::new() });
        }
        found.last_mut().expect("a section").blocks.push((language, text));
    }
    found
}

/// Returns the only block that contains this text.
pub fn block_with(mut blocks: Vec<String>, part: &str) -> String {
    blocks.retain(|block| block.contains(part));
    assert_eq!(blocks.len(), 1, "blocks with {part:?}");
    blocks.remove(0)
}

/// Returns the names and values in a block of settings, without the quotes that `postgresql.conf` requires.
pub fn settings(block: &str) -> impl Iterator<Item = (&str, &str)> {
    block.lines().map(|line| {
        let (name, value) = line.split_once(" = ").expect("name = value");
        (name, value.trim_matches('\''))
    })
}

/// Compares what a program printed with what a page shows, except for the rules and the widths of tables. `word` returns what a word
/// that differs between runs is compared as.
pub fn compare(printed: &str, shown: &str, word: impl Fn(&str) -> String) -> Result<(), String> {
    let rule = |word: &&str| !word.chars().all(|c| "-+".contains(c));
    let line = |line: &str| line.split_whitespace().filter(rule).map(&word).collect::<Vec<_>>().join(" ");
    let shape = |text: &str| text.lines().map(line).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n");
    let (printed, shown) = (shape(printed), shape(shown));
    ensure!(printed == shown, "prints\n{printed}\nbut the page shows\n{shown}");
    Ok(())
}
