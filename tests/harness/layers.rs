//! The rooms of `src/`: a file uses only its own room and those on the floors below. In `src/` and in `crates/flake`, no files use
//! each other in a circle.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use cluster::texts_of;

/// The floors of `src/` from the lowest to the highest, with their rooms. The rooms of one floor do not use each other. `faults` is
/// below all.
const FLOORS: [&[&str]; 8] = [
    &["os"],
    &["pg"],
    &["message"],
    &["config"],
    &["server"],
    &["fleet"],
    &["generator", "segments"],
    &["functions", "workers"],
];

/// The files of a crate except its root. The name of a file is its module, for example `generator::draw`.
struct Crate {
    /// The code of each file.
    files: BTreeMap<String, String>,
    /// For each name that a module exports from a different file, the path of what it stands for.
    exported: BTreeMap<String, String>,
}

impl Crate {
    fn of(folder: &str) -> Crate {
        let file = |(path, text): (PathBuf, String)| {
            let inside = path.strip_prefix(folder).expect("a file of the folder").with_extension("");
            // A link in a comment is not an import.
            let code: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
            (inside.to_string_lossy().trim_end_matches("/mod").replace('/', "::"), code.join("\n"))
        };
        let mut files: BTreeMap<String, String> = texts_of(&[folder], ".rs").into_iter().map(file).collect();
        let exports = |(module, code): (&String, &String)| {
            let at = if module == "lib" { String::new() } else { format!("{module}::") };
            let exports = code.split("pub use ").skip(1).filter_map(|rest| rest.split_once(';'));
            let name = |path: &str| path.rsplit("::").next().unwrap_or(path).to_string();
            let named = |path: String| (format!("{at}{}", name(&path)), format!("{at}{path}"));
            exports.flat_map(|(path, _)| expand(path)).map(named).collect::<Vec<_>>()
        };
        let exported = files.iter().flat_map(exports).collect();
        files.remove("lib").expect("the root of the crate");
        Crate { files, exported }
    }

    /// Returns the file that contains what a path names. A name that a module exports stands for what is in the other file.
    fn file(&self, path: &str) -> Option<&String> {
        let mut prefixes = std::iter::successors(Some(path), |path| Some(path.rsplit_once("::")?.0));
        prefixes.find_map(|prefix| match self.files.get_key_value(prefix) {
            Some((file, _)) => Some(file),
            None => self.file(self.exported.get(prefix)?),
        })
    }

    /// Returns the other files that a file uses: by paths that begin with `crate` or `super`, except in what it exports.
    fn used(&self, file: &str) -> BTreeSet<&String> {
        let code = &self.files[file];
        let above = file.rsplit_once("::").map_or(String::new(), |(above, _)| format!("{above}::"));
        let mut found = BTreeSet::new();
        for (begin, at) in [("crate::", ""), ("super::", &above)] {
            for (index, _) in code.match_indices(begin) {
                let before = &code[..index];
                if before.ends_with("pub use ") || before.ends_with(|c: char| c.is_alphanumeric() || c == ':') {
                    continue;
                }
                let end = |c: char| !(c.is_alphanumeric() || "_:{}, \n".contains(c));
                let path = code[index + begin.len()..].split(end).next().unwrap_or_default();
                found.extend(expand(path).iter().filter_map(|path| self.file(&format!("{at}{path}"))));
            }
        }
        found.retain(|used| *used != file);
        found
    }
}

/// Returns the paths that a path with braces names: `a::{b, c::d}` is `a::b` and `a::c::d`.
fn expand(path: &str) -> Vec<String> {
    let end = |c: char| !(c.is_alphanumeric() || c == '_' || c == ':');
    let Some((begin, rest)) = path.split_once('{').filter(|(begin, _)| !begin.contains(end)) else {
        return vec![path.split(end).next().unwrap_or_default().to_string()];
    };
    let (mut paths, mut depth, mut part) = (Vec::new(), 0, String::new());
    for c in rest.chars() {
        match c {
            '}' if depth == 0 => break,
            ',' if depth == 0 => paths.push(std::mem::take(&mut part)),
            _ => {
                depth += i32::from(c == '{') - i32::from(c == '}');
                part.push(c);
            }
        }
    }
    paths.push(part);
    let parts = paths.iter().map(|part| part.trim()).filter(|part| !part.is_empty());
    parts.flat_map(expand).map(|part| format!("{begin}{part}")).collect()
}

fn check_direction(sources: &Crate) -> Result<(), String> {
    let room = |file: &str| file.split("::").next().unwrap_or_default().to_string();
    let floor = |file: &str| FLOORS.iter().position(|rooms| rooms.contains(&room(file).as_str()));
    for file in sources.files.keys() {
        for used in sources.used(file) {
            let below = room(used) == room(file) || floor(used) < floor(file);
            cluster::ensure!(below, "{file} uses {used}, which is in a room that is not below its own");
        }
    }
    Ok(())
}

/// Repeatedly removes the files that use none of the remaining files, or that none of them uses. Circles are left, and what connects
/// them.
fn check_circles(sources: &Crate) -> Result<(), String> {
    let mut left: BTreeMap<&String, BTreeSet<&String>> =
        sources.files.keys().map(|file| (file, sources.used(file))).collect();
    loop {
        let files: BTreeSet<&String> = left.keys().copied().collect();
        left.retain(|_, used| !used.is_disjoint(&files));
        let used: BTreeSet<&String> = left.values().flatten().copied().collect();
        left.retain(|file, _| used.contains(file));
        if left.is_empty() {
            return Ok(());
        }
        if left.len() == files.len() {
            let names: Vec<&str> = left.into_keys().map(String::as_str).collect();
            return Err(format!("these files use each other: {}", names.join(", ")));
        }
    }
}

#[test]
fn a_file_uses_only_rooms_below_its_own() {
    let sources = Crate::of("src");
    let draw = sources.used("generator::draw");
    assert!(draw.iter().any(|used| *used == "config::guc"), "the imports of a file are not found: {draw:?}");
    check_direction(&sources).unwrap();
}

#[test]
fn no_files_use_each_other_in_a_circle() {
    check_circles(&Crate::of("src")).unwrap();
    let core = Crate::of("crates/flake/src");
    let format = core.used("id_format");
    assert!(format.iter().any(|used| *used == "layout"), "a name that the crate exports is not followed: {format:?}");
    check_circles(&core).unwrap();
}

#[test]
fn an_import_upwards_or_of_the_room_beside_is_caught() {
    let mut sources = Crate::of("src");
    sources.files.get_mut("pg::latch").expect("a file").push_str("use crate::server::{clock, wait};");
    cluster::assert_caught(check_direction(&sources), "pg::latch uses server::clock");
    let mut sources = Crate::of("src");
    sources.files.get_mut("segments::draw").expect("a file").push_str("use crate::generator::mark_storage;");
    cluster::assert_caught(check_direction(&sources), "segments::draw uses generator::mark_storage");
}

#[test]
fn a_circle_is_caught() {
    let mut sources = Crate::of("src");
    sources.files.get_mut("server::clock").expect("a file").push_str("use crate::server::wait::on_latch;");
    cluster::assert_caught(check_circles(&sources), "server::clock, server::");
    let mut core = Crate::of("crates/flake/src");
    core.files.get_mut("tick").expect("a file").push_str("use crate::{Nanos, Layout};");
    cluster::assert_caught(check_circles(&core), "layout, ");
}
