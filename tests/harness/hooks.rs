//! Where the code calls the faults in `src/faults/`: not on the path of an ID, and elsewhere at few places.

use std::path::PathBuf;

use cluster::{assert_caught, ensure, texts_of};

/// The files that a reader needs to follow an ID, apart from `crates/flake`. A fault of what they do is in the values that they get, for
/// example in the generator's state (`src/faults/state.rs`).
const PATH_OF_AN_ID: [&str; 6] = [
    "src/functions/issue.rs",
    "src/generator/draw.rs",
    "src/generator/extend.rs",
    "src/generator/clock_behind.rs",
    "src/generator/assigned.rs",
    "src/generator/grant_end.rs",
];

/// How many lines of one file call a fault at most.
const MOST: usize = 4;

/// Returns true if a line of code names the faults: their module, their feature or one of them.
fn names_faults(line: &str) -> bool {
    let word = |word: &str| matches!(word, "fault" | "faults" | "Fault" | "Faults");
    line.split(|c: char| !c.is_alphanumeric() && c != '_').any(word)
}

fn check_hooks(files: &[(PathBuf, String)]) -> Result<(), String> {
    for (path, text) in files.iter().filter(|(path, _)| !path.starts_with("src/faults")) {
        let shown = path.display();
        let on_the_path = path.starts_with("crates") || PATH_OF_AN_ID.iter().any(|file| path.ends_with(file));
        let named: Vec<&str> = text.lines().filter(|line| names_faults(line)).collect();
        ensure!(!on_the_path || named.is_empty(), "{shown} is on the path of an ID and names the faults: {named:?}");
        let is_call =
            |line: &&&str| !["use ", "pub use ", "mod ", "//"].iter().any(|word| line.trim_start().starts_with(word));
        let calls = named.iter().filter(is_call).count();
        ensure!(calls <= MOST, "{shown} calls faults in {calls} lines, more than {MOST}");
        let is_compiled = text.contains("feature = \"faults\"");
        ensure!(!is_compiled, "{shown} has code for builds with faults, which belongs into src/faults");
    }
    Ok(())
}

fn sources() -> Vec<(PathBuf, String)> {
    texts_of(&["src", "crates/flake/src"], ".rs")
}

#[test]
fn the_path_of_an_id_is_free_of_faults() {
    let files = sources();
    for file in PATH_OF_AN_ID {
        assert!(files.iter().any(|(path, _)| path.ends_with(file)), "{file} is missing");
    }
    check_hooks(&files).unwrap();
}

#[test]
fn a_fault_on_the_path_of_an_id_is_caught() {
    let with = |file: &str, line: &str| {
        let mut files = sources();
        let (_, text) = files.iter_mut().find(|(path, _)| path.ends_with(file)).expect("a file");
        text.push_str(line);
        check_hooks(&files)
    };
    let call = "    faults::deaf_wait(time);\n";
    with("src/server/stats.rs", call).unwrap();
    assert_caught(with("src/generator/draw.rs", call), "src/generator/draw.rs is on the path of an ID");
    assert_caught(with("src/functions/issue.rs", "use crate::faults;\n"), "src/functions/issue.rs is on the path");
    assert_caught(with("crates/flake/src/next_word.rs", call), "crates/flake/src/next_word.rs is on the path");
    assert_caught(with("src/server/stats.rs", &call.repeat(MOST)), "calls faults in 5 lines");
    assert_caught(with("src/server/shmem.rs", "#[cfg(feature = \"faults\")]\n"), "code for builds with faults");
}
