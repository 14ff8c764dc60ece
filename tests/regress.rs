//! The SQL surface: every file of tests/pg_regress/sql against its expected output, by PostgreSQL's own `pg_regress`.
//!
//! The beginning of a file's name says which server it runs on. A new file is a new test.

use std::fs;
use std::path::PathBuf;

use cluster::{Builder, Cluster, Host, repository};

/// The servers, by the first part of a file's name.
const SERVERS: [(&str, &[(&str, &str)]); 3] = [
    ("default", &[]),
    (
        "four_widths",
        &[
            ("snowflake_pg.layout", "41:5:5:12"),
            ("snowflake_pg.datacenter_id", "3"),
            ("snowflake_pg.worker_id", "7"),
            ("snowflake_pg.epoch", "2020-01-01T00:00:00Z"),
        ],
    ),
    ("sonyflake", &[("snowflake_pg.layout", "sonyflake"), ("snowflake_pg.worker_id", "65535")]),
];

fn folder(name: &str) -> PathBuf {
    repository().join("tests/pg_regress").join(name)
}

/// The names, without their ending, of all files in `sql/`.
fn names() -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder("sql"))
        .expect("the folder can be read")
        .map(|entry| entry.expect("an entry").path().file_stem().expect("a name").to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// The server whose name, with an underscore, the file's name begins with.
fn server_of(name: &str) -> Option<&'static str> {
    let belongs = |server: &str| name.strip_prefix(server).is_some_and(|rest| rest.starts_with('_'));
    SERVERS.into_iter().map(|(server, _)| server).find(|server| belongs(server))
}

fn run(server: &str, builder: Builder) {
    let tests: Vec<String> = names().into_iter().filter(|name| server_of(name) == Some(server)).collect();
    assert!(!tests.is_empty(), "no files for {server}");
    let cluster = builder.start();
    let host = Host::get();
    // A copy, for the servers' user may not be able to enter the repository.
    let files = host.fresh_dir(&format!("regress_{server}_files"));
    for (kind, ending) in [("sql", "sql"), ("expected", "out")] {
        let copies = host.fresh_dir(&format!("regress_{server}_files/{kind}"));
        for name in &tests {
            let file = format!("{name}.{ending}");
            let text = fs::read_to_string(folder(kind).join(&file)).unwrap_or_else(|e| panic!("{kind}/{file}: {e}"));
            host.write(&copies.join(&file), &text);
        }
    }
    let psql = cluster.program("psql");
    let bin = PathBuf::from(psql.get_program()).parent().expect("a program lies in a directory").to_path_buf();
    let output = cluster
        .pg_regress()
        .arg(format!("--bindir={}", bin.display()))
        // Where it looks for sql/ and expected/ and puts results/; --expecteddir exists only from PostgreSQL 16.
        .current_dir(&files)
        .arg(format!("--host={}", cluster.socket().display()))
        .args(["--port=5432", "--user=postgres", "--dbname=regression"])
        .args(&tests)
        .output()
        .expect("pg_regress can be run");
    let differences = fs::read_to_string(files.join("regression.diffs")).unwrap_or_default();
    assert!(
        output.status.success(),
        "{}\n{differences}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    let _ = fs::remove_dir_all(files);
}

fn server(name: &str) -> Builder {
    let (_, settings) = SERVERS.into_iter().find(|(known, _)| *known == name).expect("a known server");
    let builder = Cluster::builder(&format!("regress_{name}"));
    settings.iter().fold(builder, |builder, (setting, value)| builder.set(setting, value))
}

#[test]
fn every_file_belongs_to_a_server_and_has_its_output() {
    for name in names() {
        assert!(server_of(&name).is_some(), "{name}.sql runs on no server");
        assert!(folder("expected").join(format!("{name}.out")).exists(), "{name}.sql has no expected output");
    }
}

#[test]
fn the_sql_surface_with_the_default_layout() {
    run("default", server("default"));
}

#[test]
fn the_sql_surface_with_a_datacenter_field() {
    run("four_widths", server("four_widths"));
}

#[test]
fn the_sql_surface_with_the_sequence_above_the_worker() {
    run("sonyflake", server("sonyflake"));
}
