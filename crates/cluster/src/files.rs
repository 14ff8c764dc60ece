//! The files of the repository that tests read.

use std::fs;
use std::path::{Path, PathBuf};

use crate::repository;

/// Folders whose files are not the repository's.
const FOREIGN: [&str; 2] = ["target", ".git"];

/// Returns the files whose names end in `ending`, below these folders or directly at these paths, in order. The paths start at the
/// repository.
pub fn files(paths: &[impl AsRef<Path>], ending: &str) -> Vec<PathBuf> {
    let mut open: Vec<PathBuf> = paths.iter().map(|path| repository().join(path)).collect();
    let mut found = Vec::new();
    while let Some(path) = open.pop() {
        let inside = path.strip_prefix(repository()).expect("a path in the repository");
        if FOREIGN.iter().any(|foreign| inside.starts_with(foreign)) {
            continue;
        }
        if path.is_dir() {
            open.extend(fs::read_dir(&path).expect("a folder").map(|entry| entry.expect("an entry").path()));
        } else if path.is_file() && path.to_string_lossy().ends_with(ending) {
            found.push(inside.to_path_buf());
        }
    }
    found.sort();
    found
}

/// Returns the same files, each with its text. Files that are not text are left out.
pub fn texts_of(paths: &[impl AsRef<Path>], ending: &str) -> Vec<(PathBuf, String)> {
    let read = |path: PathBuf| Some((path.clone(), fs::read_to_string(repository().join(path)).ok()?));
    files(paths, ending).into_iter().filter_map(read).collect()
}
