//! Types the blocks of docs/pg_partman.md on tables that pg_partman maintains, while clients write and maintenance runs.

use cluster::{Answer, Builder, Client, Host, block_with, not_tested, sections, sqlstate};

use crate::migration::page::{Edit, SectionRun, builder};

mod key;
mod remove;
mod time;
mod variants;

fn page() -> String {
    cluster::page("docs/pg_partman.md")
}

/// Returns the blocks of a section, each with its language.
fn blocks(title: &str) -> Vec<(String, String)> {
    sections(&page()).into_iter().find(|section| section.title == title).expect("a section of the page").blocks
}

/// Returns the only block of a section that contains this text.
fn block(title: &str, part: &str) -> String {
    block_with(blocks(title).into_iter().map(|(_, text)| text).collect(), part)
}

/// Returns `None`, and prints why, on a PostgreSQL that is not Debian's and has no pg_partman.
fn installed() -> Option<()> {
    let postgresql = Host::get().installation();
    let library = postgresql.libraries.join("pg_partman_bgw.so");
    if !postgresql.is_debians() && !library.exists() {
        not_tested(&format!("there is no {}", library.display()));
        return None;
    }
    Some(())
}

/// Creates the tables on a server with pg_partman, and lets pg_partman maintain them and one other table.
fn run<'a>(edit: Edit<'a>, tables: &str) -> SectionRun<'a> {
    run_on(builder(), edit, tables)
}

/// Does the same on a server that has other settings.
fn run_on<'a>(builder: Builder, edit: Edit<'a>, tables: &str) -> SectionRun<'a> {
    let server = builder.start();
    server
        .session()
        .batch_execute(&format!(
            "CREATE SCHEMA partman; CREATE EXTENSION pg_partman SCHEMA partman;
             CREATE TABLE others (id bigserial PRIMARY KEY) PARTITION BY RANGE (id);
             SELECT partman.create_parent('public.others', 'id', 'native', '100');
             {tables}"
        ))
        .expect("tables");
    SectionRun::of(server, edit)
}

/// Runs the maintenance of all tables, as pg_partman's background worker does, and checks that it has maintained the other table.
fn maintain(session: &mut Client) -> Result<(), String> {
    let others = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'others'::regclass";
    let before: i64 = session.one(others);
    session
        .batch_execute("INSERT INTO others SELECT FROM generate_series(1, 100); SELECT partman.run_maintenance()")
        .map_err(|error| format!("maintenance: {}", sqlstate(&error).1))?;
    let after: i64 = session.one(others);
    if after > before { Ok(()) } else { Err("the other table was not maintained".into()) }
}

#[test]
fn every_section_with_blocks_is_tested() {
    let page = sections(&page());
    let found: Vec<(&str, usize)> = page.iter().map(|section| (&section.title[..], section.blocks.len())).collect();
    assert_eq!(found, [variants::SECTIONS, key::SECTIONS, remove::SECTIONS, time::SECTIONS].concat());
}
