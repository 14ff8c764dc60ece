//! Messages name pages that a server has: every page is installed beside the extension, and messages name them in one way.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use cluster::{Host, assert_caught, contributors_pages, ensure, page, repository, texts_of};

/// The file that says where the pages are.
const PAGES: &str = "src/message/pages.rs";

/// The folders with messages, and how a comment begins there.
const FOLDERS: [(&str, &str); 4] = [("src", "//"), ("sql", "--"), ("registry", "--"), ("portable", "--")];

/// Returns the pages that messages of the library name, each with the sections that they name.
fn named() -> Vec<(String, BTreeSet<String>)> {
    let source = page(PAGES);
    let constants = source.split("pub const ").skip(1).filter_map(|rest| {
        let (name, rest) = rest.split_once(": Page = Page(\"")?;
        Some((name, rest.split_once('"')?.0))
    });
    let sources: String = texts_of(&["src"], "").into_iter().map(|(_, text)| text).collect();
    let sections = |name: &str| {
        let call = format!("{name}.section(\"");
        sources.split(&call).skip(1).filter_map(|rest| Some(rest.split_once('"')?.0.to_string())).collect()
    };
    constants.map(|(name, file)| (file.to_string(), sections(name))).collect()
}

/// Returns the directory in which messages say that the pages are, in the installation that is tested.
fn directory() -> PathBuf {
    let source = page(PAGES);
    let named = source.split("\"$(pg_config --sharedir)/").nth(1).and_then(|rest| Some(rest.split_once('"')?.0));
    let shared = Host::get().installation().extensions.parent().expect("a directory above");
    shared.join(named.expect("a directory"))
}

/// Checks that a server has a page, and that the page has the sections.
fn check(directory: &Path, file: &str, sections: &BTreeSet<String>) -> Result<(), String> {
    let path = directory.join(file);
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    for section in sections {
        // The title of a section about an error contains the SQLSTATE.
        let titles = [format!("# {section}\n"), format!("# \"{section}\" (")];
        ensure!(titles.iter().any(|title| text.contains(title)), "{file} has no section {section:?}");
    }
    Ok(())
}

/// Checks that only the comments of a text name pages.
fn check_text(text: &str, comment: &str) -> Result<(), String> {
    let mut lines = text.lines().filter(|line| !line.trim_start().starts_with(comment));
    lines.find(|line| line.contains(".md")).map_or(Ok(()), |line| Err(format!("a page is named in {}", line.trim())))
}

#[test]
fn every_page_and_section_that_a_message_names_is_installed() {
    let (directory, pages) = (directory(), named());
    assert!(pages.iter().map(|(_, sections)| sections.len()).sum::<usize>() > 5);
    for (file, sections) in &pages {
        check(&directory, file, sections).unwrap();
    }
    let other = |file: &str, section: &str| check(&directory, file, &[section.to_string()].into());
    other("bad-day.md", "After a restore").unwrap();
    assert_caught(other("bad-day.md", "After a rest"), "bad-day.md has no section");
    assert_caught(other("good-day.md", "After a restore"), "good-day.md: No such file");
}

#[test]
fn messages_name_pages_only_with_the_path_of_an_installed_server() {
    for (folder, comment) in FOLDERS {
        for (path, text) in texts_of(&[folder], "") {
            if path != Path::new(PAGES) {
                check_text(&text, comment).unwrap_or_else(|reason| panic!("{}: {reason}", path.display()));
            }
        }
    }
    check_text("// See docs/bad-day.md.\n", "//").unwrap();
    assert_caught(check_text("    \"See docs/bad-day.md.\"\n", "//"), "a page is named in \"See docs/bad-day.md.\"");
}

/// Checks that a page does not link to the pages for contributors, which a server does not have.
fn check_links(text: &str) -> Result<(), String> {
    let linked = |name: &String| ["](", "](docs/"].iter().any(|before| text.contains(&format!("{before}{name}")));
    contributors_pages().iter().find(|name| linked(name)).map_or(Ok(()), |name| Err(format!("a link to {name}")))
}

#[test]
fn no_installed_page_links_to_a_page_that_is_not_installed() {
    let mut kept = contributors_pages();
    kept.push("README.md".into());
    for (path, text) in texts_of(&["README.md", "CHANGELOG.md", "docs"], ".md") {
        if path.parent() != Some(Path::new("docs")) || !kept.iter().any(|name| path.ends_with(name)) {
            check_links(&text).unwrap_or_else(|reason| panic!("{}: {reason}", path.display()));
        }
    }
    check_links("See [a](guarantees.md), and `docs/hazards.md` in the repository.").unwrap();
    assert_caught(check_links("See [a](hazards.md#promises)."), "a link to hazards.md");
}

/// The pages refer to each other, to the README and to the pictures. The pages for contributors are not installed.
#[test]
fn every_page_is_installed_where_its_links_lead() {
    let folder = |root: &Path, folder: &str, kind: &str| -> BTreeSet<String> {
        let entries = fs::read_dir(root.join(folder)).map(|entries| entries.map(|entry| entry.expect("an entry")));
        let names = entries.into_iter().flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| name.ends_with(kind)).collect()
    };
    let installed = directory().parent().expect("a directory above").to_path_buf();
    for (inside, kind) in
        [("docs", ".md"), ("docs/pictures", ".svg"), ("docs/monitoring", ".yml"), ("docs/monitoring", ".json")]
    {
        let mut wanted = folder(repository(), inside, kind);
        for name in contributors_pages() {
            wanted.remove(&name);
        }
        assert!(!wanted.is_empty(), "{inside}");
        assert_eq!(folder(&installed, inside, kind), wanted, "{inside}: run scripts/install");
    }
    for name in ["README.md", "CHANGELOG.md"] {
        assert!(installed.join(name).exists(), "{name} is not in {}", installed.display());
    }
}
