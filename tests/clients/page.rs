//! The blocks of docs/clients.md are parts of the programs that run.

use cluster::{assert_caught, ensure, page, sections};

use crate::PAGE;

/// Returns the text of a file in `tests/clients`.
fn source(file: &str) -> String {
    page(&format!("tests/clients/{file}"))
}

/// Returns lines without the indentation that all of them have.
fn dedent<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let indentation = |line: &&str| line.len() - line.trim_start().len();
    let common = lines.iter().filter(|line| !line.trim().is_empty()).map(indentation).min().unwrap_or(0);
    lines.iter().map(|line| line.get(common..).unwrap_or_default().trim_end()).collect()
}

/// Checks that each block is a part of the program: the same lines, one after the other, and after the lines of the preceding block.
pub fn check_parts(blocks: &[(String, String)], program: &str) -> Result<(), String> {
    let lines: Vec<&str> = program.lines().collect();
    let mut from = 0;
    for (_, block) in blocks {
        let wanted: Vec<&str> = block.lines().map(str::trim_end).collect();
        let mut windows = lines[from..].windows(wanted.len());
        let Some(at) = windows.position(|window| dedent(window) == wanted) else {
            return Err(format!("the program does not contain this block, or contains it too early:\n{block}"));
        };
        from += at + wanted.len();
    }
    Ok(())
}

/// Checks that the section of the page with this title has blocks, and that each is a part of one of these files in
/// `tests/clients`.
pub fn check_blocks(section: &str, files: &[&str]) -> Result<(), String> {
    let found = sections(&page(PAGE)).into_iter().find(|found| found.title == section);
    let Some(found) = found else { return Err(format!("{PAGE} has no blocks in section {section:?}")) };
    // A model in a file of its own is shown first.
    let program: String = files.iter().rev().map(|file| source(file)).collect();
    check_parts(&found.blocks, &program).map_err(|reason| format!("{section}: {reason}"))
}

#[test]
fn a_block_that_is_not_in_the_program_is_caught() {
    let program = "def main():\n    one()\n    if two:\n        three()\n\n    four()\n";
    let check = |blocks: &[&str]| {
        let blocks: Vec<_> = blocks.iter().map(|block| ("python".to_string(), (*block).to_string())).collect();
        check_parts(&blocks, program)
    };
    check(&["one()\nif two:\n    three()\n", "four()\n"]).unwrap();
    check(&["if two:\n    three()\n\nfour()\n"]).unwrap();
    for blocks in
        [&["one()\nthree()\n"][..], &["four()\n", "one()\n"], &["if two:\nthree()\n"], &["one()\n", "one()\n"]]
    {
        assert_caught(check(blocks), "does not contain this block");
    }
}

/// The packages of the clients that are installed from a registry, by their section: the file that pins the version, and the text of the
/// file before and after the version.
const PINNED: [(&str, &str, &str, &str); 18] = [
    ("psycopg 3", "python/requirements.txt", "\npsycopg==", " "),
    ("asyncpg", "python/requirements.txt", "\nasyncpg==", " "),
    ("SQLAlchemy 2", "python/requirements.txt", "\nsqlalchemy==", " "),
    ("Django 5", "python/requirements.txt", "\ndjango==", " "),
    ("peewee", "python/requirements.txt", "\npeewee==", " "),
    ("Tortoise ORM", "python/requirements.txt", "\ntortoise-orm==", " "),
    ("node-postgres", "javascript/package.json", "\"pg\": \"", "\""),
    ("Postgres.js", "javascript/package.json", "\"postgres\": \"", "\""),
    ("Drizzle", "javascript/package.json", "\"drizzle-orm\": \"", "\""),
    ("Kysely", "javascript/package.json", "\"kysely\": \"", "\""),
    ("Knex", "javascript/package.json", "\"knex\": \"", "\""),
    ("TypeORM", "javascript/package.json", "\"typeorm\": \"", "\""),
    ("Sequelize", "javascript/package.json", "\"sequelize\": \"", "\""),
    ("Prisma", "javascript/package.json", "\"@prisma/client\": \"", "\""),
    ("tokio-postgres", "rust/Cargo.lock", "\nname = \"tokio-postgres\"\nversion = \"", "\""),
    ("SQLx", "rust/Cargo.lock", "\nname = \"sqlx\"\nversion = \"", "\""),
    ("Diesel", "rust/Cargo.lock", "\nname = \"diesel\"\nversion = \"", "\""),
    ("SeaORM", "rust/Cargo.lock", "\nname = \"sea-orm\"\nversion = \"", "\""),
];

/// Checks that the table at the top of the page has the versions that are pinned.
fn check_versions(page: &str) -> Result<(), String> {
    for (section, file, before, after) in PINNED {
        let pins = source(file);
        let pinned = pins.split_once(before).and_then(|(_, rest)| rest.split_once(after));
        let Some((version, _)) = pinned else { return Err(format!("{file} does not pin {section}")) };
        let row = page.lines().find(|line| line.starts_with(&format!("| [{section}](#")));
        let cell = row.and_then(|row| row.split(" | ").nth(1));
        ensure!(cell == Some(version), "the page has version {cell:?} of {section}, not {version}");
    }
    Ok(())
}

#[test]
fn the_table_has_the_pinned_versions() {
    check_versions(&page(PAGE)).unwrap();
}

/// Prisma's packages belong together, and are published with the same version.
#[test]
fn all_packages_of_prisma_have_the_same_version() {
    let pins = source("javascript/package.json");
    let lines = pins.lines().filter(|line| line.contains("prisma")).filter_map(|line| line.split_once(": "));
    let versions: Vec<&str> = lines.map(|(_, version)| version.trim_end_matches(',')).collect();
    assert_eq!(versions.len(), 3, "{pins}");
    assert!(versions.iter().all(|version| *version == versions[0]), "{versions:?}");
}

/// Packages are installed from the registry that the user has configured.
#[test]
fn lock_files_name_no_registry() {
    let (lock, requirements) = (source("javascript/package-lock.json"), source("python/requirements.txt"));
    assert!(lock.contains("\"integrity\": ") && !lock.contains("\"resolved\": "));
    let mut lines = requirements.lines().filter(|line| !line.starts_with('#')).map(str::trim);
    assert!(lines.all(|line| line.starts_with("--hash=") || line.contains("==")), "{requirements}");
}

#[test]
fn a_version_that_is_not_pinned_is_caught() {
    let page = page(PAGE);
    let other = page.replacen("| [asyncpg](#asyncpg) | ", "| [asyncpg](#asyncpg) | 0.", 1);
    assert_caught(check_versions(&other), "of asyncpg");
    assert_caught(check_versions(&page.replacen("| [Diesel](", "| [Petrol](", 1)), "of Diesel");
}
