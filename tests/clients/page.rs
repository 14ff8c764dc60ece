//! The blocks of docs/clients.md are parts of the programs that run.

use std::fs;
use std::path::PathBuf;

use cluster::{Recipe, assert_caught, blocks, page, sections};

use crate::PAGE;

/// Returns lines without the indentation that all of them have.
fn dedent<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let indentation = |line: &&str| line.len() - line.trim_start().len();
    let common = lines.iter().filter(|line| !line.trim().is_empty()).map(indentation).min().unwrap_or(0);
    lines.iter().map(|line| line.get(common..).unwrap_or_default().trim_end()).collect()
}

/// Checks that each block is a part of the program: the same lines, one after the other, and after the lines of the preceding block.
fn check_parts(blocks: &[(String, String)], program: &str) -> Result<(), String> {
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

/// Checks that the section of the page with this title has blocks, and that each is a part of one of these files.
pub fn check_blocks(section: &str, files: &[PathBuf]) -> Result<(), String> {
    let found = sections(&page(PAGE)).into_iter().find(|found| found.title == section);
    let Some(found) = found else { return Err(format!("{PAGE} has no blocks in section {section:?}")) };
    let text = |path: &PathBuf| fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    // A model in a file of its own is shown first.
    let program: String = files.iter().rev().map(text).collect();
    check_parts(&found.blocks, &program).map_err(|reason| format!("{section}: {reason}"))
}

#[test]
fn every_section_with_blocks_is_tested() {
    let tested = [
        "The table",
        "psycopg 3",
        "asyncpg",
        "SQLAlchemy 2",
        "Django 5",
        "peewee",
        "Tortoise ORM",
        "node-postgres",
        "Postgres.js",
        "Drizzle",
        "Kysely",
        "Knex",
        "TypeORM",
        "Sequelize",
        "Prisma",
        "tokio-postgres",
        "SQLx",
        "Diesel",
        "SeaORM",
        "JDBC",
        "pgx",
        "Active Record",
    ];
    assert_eq!(Recipe::titles(PAGE), tested);
    assert_eq!(blocks(&page(PAGE), "sql").len(), 1);
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
