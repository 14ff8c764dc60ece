//! Checks of what tests observe, and the assertion that a check detects a fault.

use std::fs::File;
use std::io::Write;

/// Ends a function that returns `Result<_, String>` with this reason as its error, unless the condition is true.
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $($reason:tt)+) => {
        if !$condition {
            return Err(format!($($reason)+));
        }
    };
}

/// Asserts that a check failed and that its reason contains this text. This is the negative control of the check, which must fail
/// because the fault is switched on.
pub fn assert_caught(outcome: Result<(), String>, reason: &str) {
    match outcome {
        Ok(()) => panic!("the check does not notice the fault"),
        Err(found) => assert!(found.contains(reason), "expected a reason with {reason:?}, found {found:?}"),
    }
}

/// How often [`assert_caught_by_chance`] runs a check. A check of ten crashes misses a fault in a few of a hundred runs.
const RUNS: usize = 5;

/// Asserts what [`assert_caught`] asserts, for a check whose random choices or timing decide whether the fault shows. The check runs again
/// if it has not failed for this reason, up to five times.
pub fn assert_caught_by_chance(mut check: impl FnMut() -> Result<(), String>, reason: &str) {
    let mut outcome = check();
    for _ in 1..RUNS {
        if outcome.as_ref().is_err_and(|found| found.contains(reason)) {
            break;
        }
        println!("the fault did not show: {outcome:?}");
        outcome = check();
    }
    assert_caught(outcome, reason);
}

/// Checks that all IDs are positive and that no ID occurs twice. Sorts the IDs.
pub fn check_unique(ids: &mut [i64]) -> Result<(), String> {
    ids.sort_unstable();
    if let Some(first) = ids.first() {
        ensure!(*first > 0, "{first} is not positive");
    }
    let repeated = ids.windows(2).filter(|pair| pair[0] == pair[1]).count();
    ensure!(repeated == 0, "{repeated} of {} IDs came twice", ids.len());
    Ok(())
}

/// Checks that IDs increase in the order in which one session got them.
pub fn check_increasing(ids: &[i64]) -> Result<(), String> {
    match ids.windows(2).find(|pair| pair[0] >= pair[1]) {
        Some(pair) => Err(format!("{} came after {} in one session", pair[1], pair[0])),
        None => Ok(()),
    }
}

/// Reports what a test leaves out on this machine, and why. This function does not use a print macro, because the output of a
/// print macro is captured while a test succeeds. The test runner may capture all output, so this function also writes to the
/// file that `scripts/test` prints at the end.
pub fn not_tested(why: &str) {
    let _ = writeln!(std::io::stderr(), "not tested: {why}");
    if let Some(list) = std::env::var_os("NOT_TESTED") {
        let line = format!("{why}\n");
        let written = File::options().append(true).open(list).and_then(|mut list| list.write_all(line.as_bytes()));
        written.expect("scripts/test has made the list");
    }
}
