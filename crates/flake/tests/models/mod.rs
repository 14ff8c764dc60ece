//! How the models of loom are run.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use loom::model::Builder;

/// True in a negative control, which needs all preemptions to find its fault.
static CONTROL: AtomicBool = AtomicBool::new(false);

/// Returns true if a model runs in full: in a run with `THOROUGH=1`, which `make ci` sets, and in a negative control.
pub fn thorough() -> bool {
    CONTROL.load(Ordering::Relaxed) || std::env::var("THOROUGH").is_ok_and(|value| value == "1")
}

/// Runs a model in every order with at most this many preemptions, or in every order. One preemption less is tried if a model has more
/// than one, unless the run is thorough, because each preemption takes several times as long as all that are before it.
pub fn explore(preemptions: Option<usize>, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = preemptions.map(|most| if thorough() { most } else { (most - 1).max(1) });
    builder.check(model);
}

/// Asserts that a check of a model with a fault fails with this message.
#[track_caller]
pub fn caught(message: &str, check: impl FnOnce()) {
    CONTROL.store(true, Ordering::Relaxed);
    let failure = catch_unwind(AssertUnwindSafe(check)).expect_err("the check passed");
    let found = failure.downcast::<String>().unwrap();
    assert!(found.contains(message), "{found}");
}
