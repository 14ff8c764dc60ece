//! The SQL surface: `pg_regress` of PostgreSQL compares the output of every file in tests/pg_regress/sql with the expected output.
//!
//! The name of a file consists of its group and its one duty: `sonyflake_decode.sql`. The files of a group run on a server with the
//! settings of `sonyflake.conf`. A new file is a new test, and its first run says where its output is. If versions of PostgreSQL
//! print different output, `pg_regress` also compares with `sonyflake_decode_1.out` and so on.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use cluster::{Builder, Cluster, Host, Scratch, assert_caught, command, ensure, repository, settings};

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

/// The groups of files that run on a server without the library.
const WITHOUT_LIBRARY: [&str; 2] = ["not_preloaded", "registry"];

/// The groups of files, each with a server of its own. `scripts/installcheck` has the same groups.
fn groups() -> Vec<String> {
    let mut groups = names(&folder(""), ".conf");
    groups.extend(WITHOUT_LIBRARY.map(String::from));
    groups
}

/// Returns the builder with the settings of the group.
fn configured(group: &str, mut builder: Builder) -> Builder {
    builder = builder.unset("snowflake_pg.worker_id");
    if WITHOUT_LIBRARY.contains(&group) {
        return builder.unset("shared_preload_libraries");
    }
    let text = fs::read_to_string(folder(&format!("{group}.conf"))).expect("a file with settings");
    settings(&text).fold(builder, |builder, (name, value)| builder.set(name, value))
}

/// The group that a file belongs to.
fn group_of(test: &str) -> Option<String> {
    let belongs = |group: &String| test.strip_prefix(group.as_str()).is_some_and(|duty| duty.starts_with('_'));
    groups().into_iter().find(belongs)
}

/// Runs the files of the group on the server that `builder` makes. `name` is unique among all tests. The error contains the
/// differences.
fn check_files(group: &str, name: &str, builder: Builder) -> Result<(), String> {
    let tests: Vec<String> =
        names(&folder("sql"), ".sql").into_iter().filter(|test| group_of(test).as_deref() == Some(group)).collect();
    assert!(!tests.is_empty(), "no file belongs to the group {group}");
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
    let check = |group: String| {
        let name = format!("regress_{group}");
        thread::spawn(move || check_files(&group, &name, configured(&group, Cluster::builder(&name))))
    };
    let runs: Vec<_> = groups().into_iter().map(check).collect();
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
fn every_file_has_a_group_and_every_output_a_file() {
    let tests = names(&folder("sql"), ".sql");
    for test in &tests {
        assert!(group_of(test).is_some(), "{test}.sql belongs to no group");
    }
    let mut outputs = names(&folder("expected"), ".out");
    outputs.retain(|name| !is_variant(name, &tests));
    let lacking: Vec<&String> = tests.iter().filter(|test| !outputs.contains(test)).collect();
    assert!(lacking.is_empty(), "tests/pg_regress/expected lacks the output of {lacking:?}");
    outputs.retain(|name| !tests.contains(name));
    assert!(outputs.is_empty(), "tests/pg_regress/sql lacks the files of {outputs:?}");
}

/// Runs `make installcheck` on a server, as packagers do. The error contains the output.
fn installcheck(name: &str, builder: Builder) -> Result<(), String> {
    let results = Scratch::new(&format!("{name}_results"));
    let server = builder.start();
    // The second run finds what the first has left on the server.
    for _ in 0..2 {
        let mut make = server.client(command("make"));
        let run = make.arg("installcheck").current_dir(repository()).env("OUTPUT", &results.0).output();
        let run = run.expect("make can be run");
        let printed = String::from_utf8_lossy(&run.stdout).into_owned() + &String::from_utf8_lossy(&run.stderr);
        let differences = fs::read_to_string(results.0.join("regression.diffs")).unwrap_or_default();
        let printed = printed + &differences;
        ensure!(run.status.success() && printed.contains(": those of registry default;"), "{printed}");
    }
    Ok(())
}

#[test]
fn installcheck_passes_on_a_running_server() {
    let builder = Cluster::builder("installcheck").unset("snowflake_pg.witness_directory");
    installcheck("installcheck", builder.set("lc_messages", "C")).unwrap_or_else(|printed| panic!("{printed}"));
}

#[test]
fn installcheck_of_a_wrong_library_is_caught() {
    let name = "installcheck_wrong";
    assert_caught(installcheck(name, Cluster::builder(name).fault("DecodeIgnoresEpoch")), "default_decode");
}
