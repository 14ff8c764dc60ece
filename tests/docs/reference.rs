//! docs/functions.md and docs/settings.md contain every function, view and setting of the extension, and describe each of them as
//! the server's catalog does.

mod functions;
mod settings;

/// Checks that the changelog names everything that a release has. Settings are named without the extension.
fn check_changelog(changelog: &str, names: &[&str]) -> Result<(), String> {
    let is_named = |name: &str| {
        let name = name.trim_start_matches("snowflake_pg.");
        changelog.split('`').skip(1).step_by(2).any(|code| code.split('(').next() == Some(name))
    };
    let lacking: Vec<&&str> = names.iter().filter(|name| !is_named(name)).collect();
    cluster::ensure!(lacking.is_empty(), "CHANGELOG.md does not name {lacking:?}");
    Ok(())
}

/// Returns the sections of a page whose headings have three `#`: the heading, and the text below it.
fn entries(page: &str) -> Vec<(&str, &str)> {
    let sections = page.split("\n### ").skip(1).filter_map(|section| section.split_once('\n'));
    sections.map(|(title, text)| (title.trim(), text.split("\n## ").next().unwrap_or(text))).collect()
}

/// Checks that a page has exactly one entry for each name and a link to the entry, and that the page has no other entries.
fn check_names<'page>(page: &'page str, names: &[&str]) -> Result<Vec<(&'page str, &'page str)>, String> {
    let entries = entries(page);
    for name in names {
        let count = entries.iter().filter(|(title, _)| title == name).count();
        cluster::ensure!(count == 1, "{name} has {count} sections");
        let anchor = name.replace('.', "");
        cluster::ensure!(page.contains(&format!("[`{name}`](#{anchor})")), "no table links to {name}");
    }
    match entries.iter().find(|(title, _)| !names.contains(title)) {
        Some((title, _)) => Err(format!("{title} does not exist")),
        None => Ok(entries),
    }
}
