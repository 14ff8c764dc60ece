//! The results of `make bench` are of the code that is there: no part has been measured before its code changed.

#[path = "../../bench/src/measured_files.rs"]
mod measured_files;
#[path = "../../bench/src/stats.rs"]
#[allow(dead_code)]
mod stats;

use std::fs;
use std::path::{Path, PathBuf};

use cluster::{Scratch, assert_caught, command, ensure, not_tested, output, page, repository, texts_of};
use serde_json::Value;

/// The result of one part: the version of PostgreSQL and the name of the part, and the revision.
struct Measured {
    name: String,
    revision: String,
}

/// Returns the results in `bench/results`, by name.
fn results() -> Vec<Measured> {
    let result = |(path, text): (PathBuf, String)| {
        let report: Value = serde_json::from_str(&text).expect("JSON");
        let name = path.strip_prefix("bench/results").expect("a result").with_extension("").display().to_string();
        let part = name.split_once('/').expect("a version and a part").1;
        assert_eq!(report["part"], *part, "{}", path.display());
        Measured { revision: report["machine"]["revision"].as_str().unwrap_or_default().into(), name }
    };
    texts_of(&["bench/results"], ".json").into_iter().map(result).collect()
}

/// Lets git read a repository that belongs to a different user.
const ANY_OWNER: [&str; 2] = ["-c", "safe.directory=*"];

/// Returns the output of git in a repository. The error is what it writes to stderr.
fn git(directory: &Path, arguments: &[&str]) -> Result<String, String> {
    let output = command("git").args(ANY_OWNER).args(arguments).current_dir(directory).output();
    let output = output.map_err(|error| error.to_string())?;
    ensure!(output.status.success(), "git {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns the lines of a file that are neither empty nor comments.
fn code(text: &str) -> Vec<&str> {
    let lines = text.lines().map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with("//") && !line.starts_with("--")).collect()
}

/// Checks that the code of these files and folders is the same as in the revision.
fn check_code(directory: &Path, revision: &str, paths: &[&str]) -> Result<(), String> {
    let names = |revision: &[&str]| git(directory, &[revision, &["--"], paths].concat());
    let now = names(&["ls-files"])?;
    let then = names(&["ls-tree", "-r", "--name-only", revision])?;
    let mut files: Vec<&str> = now.lines().chain(then.lines()).collect();
    files.sort_unstable();
    files.dedup();
    ensure!(!files.is_empty(), "there are no files {}", paths.join(", "));
    for file in files {
        let before = git(directory, &["show", &format!("{revision}:{file}")]).unwrap_or_default();
        let after = fs::read_to_string(directory.join(file)).unwrap_or_default();
        ensure!(code(&before) == code(&after), "{file} has changed since {revision}");
    }
    Ok(())
}

/// Checks one result.
fn check(directory: &Path, measured: &Measured, paths: &[&str]) -> Result<(), String> {
    let Measured { name, revision } = measured;
    ensure!(!revision.is_empty(), "{name} records no revision");
    ensure!(!revision.contains("dirty"), "{name} was measured with files that are in no revision");
    check_code(directory, revision, paths).map_err(|reason| format!("measure {name} again: {reason}"))
}

#[test]
fn every_part_has_been_measured_since_its_code_changed() {
    let mut wrong = Vec::new();
    for result in &results() {
        let Measured { name, revision } = result;
        if !revision.is_empty() && git(repository(), &["cat-file", "-e", &revision.replace(", dirty", "")]).is_err() {
            not_tested(&format!("{name}: this copy of the sources does not have revision {revision}"));
            continue;
        }
        let part = name.split_once('/').expect("a version and a part").1;
        wrong.extend(check(repository(), result, &measured_files::of(part)).err());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Each part of the benchmark has sources, and each of these is there.
#[test]
fn every_part_names_its_sources() {
    let text = page("bench/src/report.rs");
    let list = text.split_once("pub const PARTS").and_then(|(_, rest)| rest.split("];").next()).expect("the parts");
    let parts: Vec<&str> = list.split('"').skip(1).step_by(2).collect();
    assert!(parts.len() > 10, "{parts:?}");
    for part in parts {
        for path in measured_files::of(part) {
            assert!(repository().join(path).exists(), "{part}: {path}");
        }
    }
}

/// The interval of a median is that of a table of order statistics: 6 and 15 values, and 5, for which there is none.
#[test]
fn the_interval_of_a_median_is_that_of_the_tables() {
    let interval = |count: u32| (1..=count).rev().map(f64::from).collect::<stats::Sample>().interval();
    assert_eq!(interval(0), None);
    assert_eq!(interval(5), None);
    assert_eq!(interval(6), Some((1.0, 6.0)));
    assert_eq!(interval(15), Some((4.0, 12.0)));
    assert_eq!(interval(101), Some((41.0, 61.0)));
}

/// Values at the limit are within it.
#[test]
fn the_part_of_the_values_within_a_limit_is_counted() {
    let mut times = stats::Histogram::default();
    assert_eq!(times.part(1_000), 0.0);
    [(999, 6), (1_000, 3), (1_001, 1)].into_iter().for_each(|(value, count)| times.add(value, count));
    assert_eq!([0, 999, 1_000, 1_001].map(|limit| times.part(limit)), [0.0, 0.6, 0.9, 1.0]);
}

#[test]
fn figures_of_older_code_are_caught() {
    let scratch = Scratch::new("figures");
    let run = |arguments: &[&str]| {
        let identity = ["-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"];
        output(command("git").args(ANY_OWNER).args(identity).args(arguments).current_dir(&scratch.0))
    };
    let write = |name: &str, text: &str| fs::write(scratch.0.join(name), text).expect("a file");
    run(&["init", "--quiet"]);
    write("draw.rs", "// Draws.\nfn draw() {}\n");
    write("page.md", "a page\n");
    run(&["add", "."]);
    run(&["commit", "--quiet", "--message", "first"]);
    let revision = run(&["rev-parse", "HEAD"]);
    let measured = |revision: &str| Measured { name: "15/cost".into(), revision: revision.into() };
    let result = |revision: &str| check(&scratch.0, &measured(revision), &["draw.rs"]);
    result(&revision).unwrap();
    assert_caught(result(""), "15/cost records no revision");
    assert_caught(result(&format!("{revision}, dirty")), "in no revision");
    // Neither a page nor a comment changes a figure.
    write("page.md", "a different page\n");
    write("draw.rs", "// Draws an ID.\n\nfn draw() {}\n");
    result(&revision).unwrap();
    write("draw.rs", "fn draw() { sleep() }\n");
    assert_caught(result(&revision), "measure 15/cost again: draw.rs has changed since");
    fs::remove_file(scratch.0.join("draw.rs")).expect("a file");
    assert_caught(result(&revision), "draw.rs has changed since");
    assert_caught(check_code(&scratch.0, &revision, &["none.rs"]), "there are no files none.rs");
}
