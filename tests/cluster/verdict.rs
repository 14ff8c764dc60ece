//! Checks that can fail, and the proof that they do.

use std::io::Write;

/// Ends a check that returns `Result<(), String>` with a reason, unless a condition holds.
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $($reason:tt)+) => {
        if !$condition {
            return Err(format!($($reason)+));
        }
    };
}

/// The negative control of a check: on a build with the fault it must have failed, and for the reason that names the fault.
pub fn assert_caught(verdict: Result<(), String>, reason: &str) {
    match verdict {
        Ok(()) => panic!("the check does not notice the fault"),
        Err(found) => assert!(found.contains(reason), "expected a reason with {reason:?}, found {found:?}"),
    }
}

/// What is wrong with IDs that were issued: not positive, or the same twice. Sorts them.
pub fn check_ledger(ids: &mut [i64]) -> Result<(), String> {
    ids.sort_unstable();
    if let Some(first) = ids.first() {
        ensure!(*first > 0, "{first} is not positive");
    }
    let repeated = ids.windows(2).filter(|pair| pair[0] == pair[1]).count();
    ensure!(repeated == 0, "{repeated} of {} IDs came twice", ids.len());
    Ok(())
}

/// Whether IDs, in the order in which one session got them, increase.
pub fn check_increasing(ids: &[i64]) -> Result<(), String> {
    match ids.windows(2).find(|pair| pair[0] >= pair[1]) {
        Some(pair) => Err(format!("{} came after {} in one session", pair[1], pair[0])),
        None => Ok(()),
    }
}

/// Says what a test leaves out on this machine, and why. Not by a macro, whose output is kept back while a test succeeds.
pub fn not_tested(why: &str) {
    let _ = writeln!(std::io::stderr(), "not tested: {why}");
}
