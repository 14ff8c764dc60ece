//! docs/portable.md: from a blank database of a role without privileges to decoded IDs.

use std::fs;

use cluster::{Answer, Cluster, Host, Recipe, Scratch, code_blocks, ensure, page, typed};

use crate::server::{plain, script};

const PAGE: &str = "docs/portable.md";

/// Returns the block that follows a block, with the expected output.
fn answer(block: &str) -> Option<String> {
    let blocks = code_blocks(&page(PAGE));
    let at = blocks.iter().position(|known| known.text == block).expect("a block of the page");
    blocks.get(at + 1).filter(|next| next.language == "text" && next.follows).map(|next| next.text.clone())
}

/// A database that belongs to a role without privileges, and a directory with the script.
struct Managed {
    server: Cluster,
    files: Scratch,
}

impl Managed {
    fn new(test: &str) -> Managed {
        let (server, mut session) = plain(test);
        session.run("CREATE ROLE app LOGIN; CREATE ROLE reader LOGIN");
        session.run("CREATE DATABASE warehouse OWNER app");
        let files = Scratch::new(&format!("portable_{test}.files"));
        let path = files.write("snowflake_portable.sql", &script(test));
        Host::get().write(&path, &fs::read_to_string(&path).expect("just written"));
        Managed { server, files }
    }

    /// Types a block into a shell.
    fn shell(&self, block: &str) -> Result<String, String> {
        let mut shell = Host::get().shell(&format!("set -e\n{block}"));
        shell.current_dir(&self.files.0).env("PGHOST", self.server.socket()).env("PGPORT", "5432").env("PGUSER", "app");
        typed(shell, "")
    }

    /// Reads an ID as a role that owns nothing.
    fn reads(&self) -> String {
        let mut psql = self.server.psql();
        psql.args(["-d", "warehouse", "-U", "reader", "-A", "-t"]);
        let read = "SELECT (snowflake_timestamp(1541815603606036480, 'twitter') AT TIME ZONE 'UTC')::date;";
        typed(psql, read).expect("every role can read IDs").trim().into()
    }

    /// Types a block into psql, and compares the output with that of the page.
    fn psql(&self, block: &str) -> Result<(), String> {
        let mut psql = self.server.psql();
        psql.args(["-d", "warehouse", "-U", "app"]);
        let printed = typed(psql, block)?;
        let expected = answer(block);
        ensure!(expected.as_ref().is_none_or(|expected| *expected == printed), "{block}:\n{printed}");
        Ok(())
    }
}

/// The tests of this file, of `library.rs` and of `warehouses.rs` type all blocks.
#[test]
fn every_section_with_blocks_is_tested() {
    let tested = [
        "Create the functions",
        "Issue IDs",
        // Commands for services that are not tested.
        "On a managed service",
        "To the library",
        "Back from the library",
        // The statements for the registry, which `tests/docs/fleet/setup.rs` types.
        "A managed server beside servers with the library",
        "Read IDs",
        "Use another layout or epoch",
        "With pg_tle",
        "Differences from the extension",
        "Remove the functions",
        "DuckDB",
        "SQLite",
        "ClickHouse",
        "pandas",
        "polars",
    ];
    assert_eq!(Recipe::titles(PAGE), tested);
}

/// Types the blocks of these sections, each with the kinds of its blocks in SQL and for the shell.
fn follow(managed: &Managed, sections: &[(&str, &str, &str)]) {
    for (title, sql, sh) in sections {
        for block in code_blocks(&page(PAGE)).iter().filter(|block| block.heading == *title) {
            if block.language == *sql {
                managed.psql(&block.text).unwrap();
            } else if block.language == *sh {
                // A wrong layout: the command fails, and installs nothing.
                let wrong = block.text.replace("-f", "-c \"SET snowflake_pg.layout = 'wrong'\" -f");
                let said = managed.shell(&wrong).expect_err("the layout is wrong");
                assert!(said.contains("invalid value for parameter \"snowflake_pg.layout\""), "{said}");
                managed.shell(&block.text).unwrap();
                assert_eq!(managed.reads(), "2022-06-28", "{title}");
            } else {
                assert_eq!(block.language, "text", "{title}");
            }
        }
    }
}

const CREATE: (&str, &str, &str) = ("Create the functions", "sql managed", "sh managed");
const REMOVE: (&str, &str, &str) = ("Remove the functions", "sql managed", "");

#[test]
fn a_blank_database_reads_and_issues_ids() {
    let managed = Managed::new("page");
    follow(&managed, &[CREATE, ("Issue IDs", "sql managed", ""), ("Read IDs", "sql managed", ""), REMOVE]);
    let left = "SELECT count(*) FROM pg_proc WHERE proname LIKE 'snowflake%'";
    let mut session = managed.server.connect_to("warehouse");
    assert_eq!(session.one::<i64>(left), 0);
    // Nothing else that the page has changed remains.
    assert_eq!(session.one::<i64>("SELECT count(*) FROM pg_db_role_setting"), 0);
}

#[test]
fn a_database_has_the_layout_of_the_server_that_issues_its_ids() {
    let managed = Managed::new("page_layout");
    follow(&managed, &[CREATE, ("Use another layout or epoch", "sql layout", "sh layout"), REMOVE]);
}

#[test]
fn the_page_shows_the_error_beside_the_extension() {
    let shown = page(PAGE);
    let (_, section) = shown.split_once("## Differences from the extension").expect("a section");
    let source = fs::read_to_string(cluster::repository().join("portable/install.sql")).expect("a source file");
    for (begin, name) in [("ERROR:  ", "MESSAGE"), ("DETAIL:  ", "DETAIL"), ("HINT:  ", "HINT")] {
        let text = section.lines().find_map(|line| line.strip_prefix(begin)).expect("the page shows the error");
        assert!(source.contains(&format!("{name} = '{text}'")), "{text}");
    }
}
