//! The amount of work: all of it, or less if the environment variables `ROUNDS` and `SCALE` request less. The full number of rounds is in
//! the file of each part.

use std::path::PathBuf;
use std::time::Duration;

use cluster::{major, repository};

use crate::stats::Sample;

/// The directory of the results of full runs, which has a directory for each version of PostgreSQL.
pub const RESULTS: &str = "bench/results";

/// Returns the usual number of rounds, or fewer if the environment variable `ROUNDS` requests fewer.
pub fn rounds(usual: usize) -> usize {
    usual.min(asked("ROUNDS").map_or(usual, |rounds| rounds as usize))
}

/// Returns a number of rows or calls, divided by `SCALE`.
pub fn scaled(usual: u64) -> u64 {
    (usual / scale()).max(1)
}

/// Returns a duration divided by `SCALE`, but long enough to measure something.
pub fn lasting(usual: Duration) -> Duration {
    let least = Duration::from_millis(50);
    (usual / scale() as u32).max(least.min(usual))
}

/// Returns the numbers of sessions to measure. If `SCALE` is set, these are only the first two.
pub fn steps(usual: &[usize]) -> &[usize] {
    if scale() > 1 { &usual[..2] } else { usual }
}

/// Returns the directory of the results with this version of PostgreSQL. The results of a reduced run never replace those of a full run.
pub fn results() -> PathBuf {
    let full = asked("ROUNDS").is_none() && asked("SCALE").is_none();
    repository().join(if full { RESULTS } else { "target/bench" }).join(major())
}

/// Measures all rivals in every round. Each round begins with a different rival, and a round before the first one only warms up.
/// Returns the `K` figures of every rival, in the order of the rounds.
pub fn alternate<const K: usize>(
    rounds: usize,
    rivals: usize,
    mut measure: impl FnMut(usize) -> [f64; K],
) -> [Vec<Sample>; K] {
    let mut figures = [(); K].map(|()| vec![Sample::default(); rivals]);
    // The results of a reduced run are not quoted, so it needs no warm-up.
    let first = usize::from(scale() > 1);
    for round in first..=rounds.max(first) {
        for turn in 0..rivals {
            let rival = (turn + round) % rivals;
            let values = measure(rival);
            if round > 0 {
                figures.iter_mut().zip(values).for_each(|(figure, value)| figure[rival].push(value));
            }
        }
    }
    figures
}

fn scale() -> u64 {
    asked("SCALE").unwrap_or(1)
}

/// Returns the number in an environment variable, or 1 if the number is less than 1. Returns `None` if the variable is empty or
/// not set.
fn asked(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok().filter(|text| !text.is_empty())?;
    let number = text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}"));
    Some(std::cmp::max(number, 1))
}
