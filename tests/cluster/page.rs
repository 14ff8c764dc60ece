//! The pages that tell a reader what to type.

use std::fs;

use crate::repository;

/// A page of the repository.
pub fn page(path: &str) -> String {
    fs::read_to_string(repository().join(path)).unwrap_or_else(|e| panic!("{path} cannot be read: {e}"))
}

/// A page's blocks of a language, in order.
pub fn blocks(page: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    page.split(&fence).skip(1).map(|rest| rest.split("```").next().expect("a block").to_string()).collect()
}

/// A part of a page under a headline, with its blocks: what stands after the fence, and their texts.
pub struct Section {
    /// The headline.
    pub title: String,
    /// The blocks, in order.
    pub blocks: Vec<(String, String)>,
}

/// A page's sections that have blocks, in order.
pub fn sections(page: &str) -> Vec<Section> {
    let mut found: Vec<Section> = Vec::new();
    let mut open: Option<(String, String)> = None;
    for line in page.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(info)) => open = Some((info.into(), String::new())),
            (Some(_), Some(_)) => {
                found.last_mut().expect("a headline").blocks.push(open.take().expect("an open block"));
            }
            (Some((_, text)), None) => *text += &format!("{line}\n"),
            (None, None) => {
                if let Some((level, title)) = line.split_once(' ')
                    && !level.is_empty()
                    && level.bytes().all(|b| b == b'#')
                {
                    found.push(Section { title: title.into(), blocks: Vec::new() });
                }
            }
        }
    }
    assert!(open.is_none(), "a block is not closed");
    found.retain(|section| !section.blocks.is_empty());
    found
}

/// The only one of these blocks that has this in it.
pub fn block_with(mut blocks: Vec<String>, part: &str) -> String {
    blocks.retain(|block| block.contains(part));
    assert_eq!(blocks.len(), 1, "blocks with {part:?}");
    blocks.remove(0)
}

/// The names and values of a block of settings, without the quotes that `postgresql.conf` wants.
pub fn settings(block: &str) -> impl Iterator<Item = (&str, &str)> {
    block.lines().map(|line| {
        let (name, value) = line.split_once(" = ").expect("name = value");
        (name, value.trim_matches('\''))
    })
}
