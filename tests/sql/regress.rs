//! The SQL surface: `pg_regress` of PostgreSQL compares the output of every file in tests/pg_regress/sql with the expected output.
//!
//! The name of a file consists of its server and its one duty: `sonyflake_decode.sql`. A new file is a new test, and its first run
//! says where its output is. If versions of PostgreSQL print different output, `pg_regress` also compares with
//! `sonyflake_decode_1.out` and so on.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use cluster::{Builder, Cluster, Host, assert_caught, repository};

/// The difference between a server and the harness's default, which has worker ID 1 and the default layout.
type Configure = fn(Builder) -> Builder;

/// The servers, by the first part of a file's name.
const SERVERS: [(&str, Configure); 9] = [
    ("default", |server| server),
    ("four_widths", |server| {
        server
            .set("snowflake_pg.layout", "41:5:5:12")
            .set("snowflake_pg.epoch", "2020-01-01T00:00:00Z")
            .set("snowflake_pg.datacenter_id", "3")
            .set("snowflake_pg.worker_id", "7")
    }),
    ("sonyflake", |server| server.set("snowflake_pg.layout", "sonyflake").set("snowflake_pg.worker_id", "65535")),
    // Extends beyond PostgreSQL's timestamps, and leaves a bit of the number unused.
    ("seconds", |server| server.set("snowflake_pg.layout", "50:4:8@1s")),
    // Twelve days from 2010 on.
    ("used_up", |server| server.set("snowflake_pg.layout", "20:4:10@1s")),
    ("not_begun", |server| server.set("snowflake_pg.epoch", "2199-01-01T00:00:00Z")),
    ("no_worker", |server| server.unset("snowflake_pg.worker_id")),
    // The registry of a fleet does not need the library.
    ("registry", |server| server.unset("shared_preload_libraries").unset("snowflake_pg.worker_id")),
    ("not_preloaded", |server| server.unset("shared_preload_libraries").unset("snowflake_pg.worker_id")),
];

fn folder(name: &str) -> PathBuf {
    repository().join("tests/pg_regress").join(name)
}

/// The names of all files in a folder with this ending, without the ending.
fn names(folder: &Path, ending: &str) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter_map(|name| name.strip_suffix(ending).map(String::from))
        .collect();
    names.sort();
    names
}

/// True for an output that one of these tests has on another version of PostgreSQL. `pg_regress` allows ten.
fn is_variant(name: &str, tests: &[String]) -> bool {
    name.rsplit_once('_').is_some_and(|(test, n)| n.len() == 1 && n <= "9" && tests.iter().any(|known| known == test))
}

/// The server that a file runs on.
fn server_of(test: &str) -> Option<&'static str> {
    let belongs = |server: &str| test.strip_prefix(server).is_some_and(|duty| duty.starts_with('_'));
    SERVERS.into_iter().map(|(server, _)| server).find(|server| belongs(server))
}

/// Runs the files of `server` on the server that `builder` makes. `name` is unique among all tests. The error contains the
/// differences.
fn check_files(server: &str, name: &str, builder: Builder) -> Result<(), String> {
    let tests: Vec<String> =
        names(&folder("sql"), ".sql").into_iter().filter(|t| server_of(t) == Some(server)).collect();
    assert!(!tests.is_empty(), "no file runs on the server {server}");
    let host = Host::get();
    // A copy, because the servers' user may not be able to enter the repository.
    let dir = host.fresh_dir(&format!("{name}_files"));
    for (kind, ending) in [("sql", ".sql"), ("expected", ".out")] {
        let copies = host.fresh_dir(&format!("{name}_files/{kind}"));
        for test in &tests {
            let file = format!("{test}{ending}");
            // Without the file, pg_regress would stop before it shows the output to expect.
            let text = fs::read_to_string(folder(kind).join(&file)).unwrap_or_default();
            host.write(&copies.join(&file), &text);
        }
    }
    for variant in names(&folder("expected"), ".out").iter().filter(|name| is_variant(name, &tests)) {
        let file = format!("{variant}.out");
        let text = fs::read_to_string(folder("expected").join(&file)).expect("an expected output");
        host.write(&dir.join("expected").join(&file), &text);
    }
    let cluster = builder.start();
    let psql = cluster.program("psql");
    let bin = Path::new(psql.get_program()).parent().expect("a program lies in a directory");
    let output = cluster
        .pg_regress()
        // pg_regress reads sql/ and expected/ and writes results/ here.
        .current_dir(&dir)
        .arg(format!("--bindir={}", bin.display()))
        .arg(format!("--host={}", cluster.socket().display()))
        .args(["--port=5432", "--user=postgres", "--dbname=regression", "--load-extension=snowflake_pg"])
        .args(&tests)
        .output()
        .expect("pg_regress can be run");
    if !output.status.success() {
        return Err(format!(
            "{}{}\n{}\nIf the new output is right, copy it from {}.\n",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
            fs::read_to_string(dir.join("regression.diffs")).unwrap_or_default(),
            dir.join("results").display(),
        ));
    }
    let _ = fs::remove_dir_all(dir);
    Ok(())
}

#[test]
fn every_file_prints_what_is_expected() {
    let runs = SERVERS.map(|(server, configure)| {
        let name = format!("regress_{server}");
        thread::spawn(move || check_files(server, &name, configure(Cluster::builder(&name))))
    });
    let differences: Vec<String> =
        runs.into_iter().filter_map(|run| run.join().expect("a server that runs").err()).collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn a_file_that_prints_something_else_is_caught() {
    let name = "regress_wrong";
    let outcome = check_files("default", name, Cluster::builder(name).fault("DecodeIgnoresEpoch"));
    let _ = fs::remove_dir_all(Host::get().dir(&format!("{name}_files")));
    assert_caught(outcome, "results/default_decode.out");
}

#[test]
fn every_file_has_a_server_and_every_output_a_file() {
    let tests = names(&folder("sql"), ".sql");
    for test in &tests {
        assert!(server_of(test).is_some(), "{test}.sql runs on no server");
    }
    let mut outputs = names(&folder("expected"), ".out");
    outputs.retain(|name| !is_variant(name, &tests));
    assert_eq!(outputs, tests, "an output without a file, or a file without an output");
}
