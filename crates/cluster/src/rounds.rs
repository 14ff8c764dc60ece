//! How much a test does at random.

/// Returns the number of rounds of a test: `all` in a run with the environment variable `THOROUGH=1`, which `make ci` sets, and otherwise
/// `everyday`.
pub fn rounds(all: u64, everyday: u64) -> u64 {
    if thorough() { all } else { everyday }
}

/// Returns true in a run with `THOROUGH=1`.
pub fn thorough() -> bool {
    std::env::var("THOROUGH").is_ok_and(|value| value == "1")
}
