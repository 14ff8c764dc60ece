//! Rules for the sources of the tests.

use std::path::PathBuf;

use cluster::{assert_caught, ensure, texts_of};

/// A program that is not started by the harness would inherit the whole environment.
#[test]
fn every_program_is_started_by_the_harness() {
    let started = concat!("Command::", "new(");
    let mut found = texts_of(&["tests", "bench/src", "demo", "crates/cluster"], ".rs");
    found.retain(|(_, text)| text.contains(started));
    let found: Vec<PathBuf> = found.into_iter().map(|(path, _)| path).collect();
    assert_eq!(found, [PathBuf::from("crates/cluster/src/tool.rs")]);
}

/// Whether the tests of a file that end in `_caught`, which `make test` leaves out, are its negative controls.
fn check_controls(text: &str) -> Result<(), String> {
    for part in text.split("#[test]\n").skip(1) {
        let body = part.split("\n}\n").next().unwrap_or_default();
        let name = body.strip_prefix("fn ").and_then(|rest| rest.split('(').next()).unwrap_or_default();
        let has_control = body.contains("assert_caught") || body.contains("The control of");
        if name.ends_with("_caught") {
            ensure!(has_control, "{name} neither uses assert_caught nor says of what it is the control");
        } else {
            let fault = has_control && body.contains(".fault(");
            ensure!(!fault, "{name} is the control of a fault, and its name does not end in _caught");
        }
    }
    Ok(())
}

#[test]
fn negative_controls_have_names_that_say_so() {
    let files = texts_of(&["tests"], ".rs");
    files.iter().for_each(|(path, text)| {
        check_controls(text).unwrap_or_else(|reason| panic!("{}: {reason}", path.display()));
    });
    let caught: usize = files.iter().map(|(_, text)| text.matches("_caught() {\n").count()).sum();
    assert!(caught > 50, "{caught} negative controls");
}

#[test]
fn a_control_with_the_name_of_a_test_is_caught() {
    let named = |name: &str, body: &str| check_controls(&format!("#[test]\nfn {name}() {{\n    {body}\n}}\n"));
    let control = "assert_caught(check(builder(\"x\").fault(\"X\")), \"why\");";
    named("what_is_wrong_is_caught", control).unwrap();
    named("all_is_well", "check(builder(\"x\").fault(\"SlowDisk\")).unwrap();").unwrap();
    assert_caught(named("all_is_well", control), "all_is_well is the control");
    assert_caught(named("what_is_wrong_is_caught", "check(builder(\"x\")).unwrap();"), "of what it is");
}
