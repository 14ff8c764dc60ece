//! A type name means one thing in the workspace, so that a reader who knows it from one file knows it in the others.

use std::collections::BTreeMap;
use std::path::PathBuf;

use cluster::{assert_caught, ensure, texts_of};

/// The words before the name of a type in its definition.
const DEFINING: [&str; 5] = ["struct ", "enum ", "union ", "trait ", "type "];

/// Returns the word at the beginning of a text, or an empty string.
fn word(text: &str) -> &str {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
}

/// Returns the name of the type that a line defines. A type that belongs to a trait is left out, because its name is only used together
/// with the trait or with a type that implements it.
fn definition(line: &str) -> Option<&str> {
    let is_visibility = |part: &str| part.starts_with("pub") || part == "unsafe";
    let mut code = line.trim_start();
    while let Some((_, rest)) = code.split_once(' ').filter(|(part, _)| is_visibility(part)) {
        code = rest;
    }
    let keyword = DEFINING.into_iter().find(|keyword| code.starts_with(keyword))?;
    let of_trait = keyword == "type " && line.starts_with(' ');
    (!of_trait).then(|| word(&code[keyword.len()..]))
}

/// Returns the other names that the imports of a file give to types.
fn aliases(text: &str) -> impl Iterator<Item = &str> {
    let begins = |at: usize| matches!(text[..at].rsplit('\n').next().map(str::trim), Some("" | "pub"));
    let imports = text.match_indices("use ").filter(move |(at, _)| begins(*at));
    let paths = imports.filter_map(|(at, _)| text[at..].split_once(';'));
    let names = paths.flat_map(|(import, _)| import.split(" as ").skip(1)).map(word);
    // The name of a constant has no lower-case letter.
    names.filter(|name| name.starts_with(char::is_uppercase) && name.contains(char::is_lowercase))
}

/// Whether no two types have the same name.
fn check(files: &[(PathBuf, String)]) -> Result<(), String> {
    let mut found: BTreeMap<&str, &PathBuf> = BTreeMap::new();
    for (path, text) in files {
        for name in text.lines().filter_map(definition).chain(aliases(text)) {
            let other = found.insert(name, path);
            ensure!(other.is_none(), "{} and {} define {name}", other.unwrap_or(path).display(), path.display());
        }
    }
    ensure!(found.len() > 400, "only {} names of types are found", found.len());
    Ok(())
}

/// The sources of the workspace, without the types with faults, which have the names of the types that they replace.
fn sources() -> Vec<(PathBuf, String)> {
    let mut files = texts_of(&["src", "crates", "tests", "bench", "demo", "build.rs"], ".rs");
    files.retain(|(path, _)| path != "src/faults/state.rs");
    files
}

#[test]
fn a_type_name_means_one_thing_in_the_workspace() {
    check(&sources()).unwrap();
}

#[test]
fn a_name_of_two_types_is_caught() {
    let with = |code: &str| {
        let mut files = sources();
        files.push(("tests/other.rs".into(), format!("//! Another file.\n\n{code}\n")));
        check(&files)
    };
    with("impl Iterator for Items {\n    type Item = Layout;\n}\nuse std::fmt::Write as _;").unwrap();
    for code in [
        "struct Layout(u64);",
        "    pub(crate) enum Layout {}",
        "pub type Layout<T> = Vec<T>;",
        "unsafe trait Layout {}",
        "use flake::{Block as Layout, Mark};",
        "    pub use flake::Block as Layout;",
    ] {
        assert_caught(with(code), "crates/flake/src/layout.rs and tests/other.rs define Layout");
    }
}
