//! A section of a page whose blocks are typed one after the other.

use std::collections::VecDeque;

use crate::sections;

/// The blocks of a section, which are typed one after the other.
pub struct Recipe {
    title: String,
    blocks: VecDeque<(String, String)>,
}

impl Recipe {
    /// Returns the section of a page with this heading.
    pub fn of(page: &str, title: &str) -> Recipe {
        Recipe::all(page).into_iter().find(|recipe| recipe.title == title).expect("a section of the page")
    }

    /// Returns the titles of the sections of a page that have blocks.
    pub fn titles(page: &str) -> Vec<String> {
        Recipe::all(page).into_iter().map(|recipe| recipe.title).collect()
    }

    /// Returns the next block, which must have this language and place after its fence.
    pub fn block(&mut self, info: &str) -> String {
        let next = self.blocks.pop_front();
        let (found, text) = next.unwrap_or_else(|| panic!("{:?} has no {info:?} any more", self.title));
        assert_eq!(found, info, "the next block of {:?}", self.title);
        text
    }

    /// Returns all remaining blocks, which must have these languages and places after their fences.
    pub fn rest<const N: usize>(mut self, infos: [&str; N]) -> [String; N] {
        let blocks = infos.map(|info| self.block(info));
        assert!(self.is_empty(), "{:?} has more blocks", self.title);
        blocks
    }

    /// Returns true if there are no more blocks.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    fn all(page: &str) -> Vec<Recipe> {
        let sections = sections(&crate::page(page));
        sections.into_iter().map(|section| Recipe { title: section.title, blocks: section.blocks.into() }).collect()
    }
}
