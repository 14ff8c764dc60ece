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
