//! Figures, stored as one JSON file for each part of the benchmark.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::machine::Machine;
use crate::stats::Sample;

/// The parts of the benchmark, in the order in which they are run and listed.
pub const PARTS: [&str; 14] = [
    "cost",
    "conceal",
    "crates",
    "storage",
    "copy",
    "oltp",
    "contention",
    "wire",
    "service",
    "segments",
    "serials",
    "fleet",
    "portable",
    "failovers",
];

/// The result of one part of the benchmark.
#[derive(Debug, Serialize, Deserialize)]
pub struct BenchReport {
    /// The name of the part.
    pub part: String,
    /// The machine and the server.
    pub machine: Machine,
    /// Notes that a reader needs to understand the figures.
    pub notes: Vec<String>,
    /// The figures.
    pub figures: Vec<Figure>,
}

/// One figure of all rivals.
#[derive(Debug, Serialize, Deserialize)]
pub struct Figure {
    /// The name of the figure.
    pub name: String,
    /// The place on the axis, if the same figure was measured at several places.
    pub at: Option<AxisPlace>,
    /// The unit of the values.
    pub unit: String,
    /// The number of turns of every rival.
    pub rounds: usize,
    /// The size of one turn in rows, calls or time.
    pub turn: String,
    /// The values, snowflakes first.
    pub values: Vec<Value>,
}

/// A place on an axis.
#[derive(Debug, Serialize, Deserialize)]
pub struct AxisPlace {
    /// The name of the axis.
    pub axis: String,
    /// The value on the axis.
    pub place: u64,
}

/// The value of one rival.
#[derive(Debug, Serialize, Deserialize)]
pub struct Value {
    /// The rival's name.
    pub rival: String,
    /// The median of all rounds.
    pub median: f64,
    /// The smallest value of all rounds.
    pub min: f64,
    /// The lower quartile of all rounds.
    pub lower_quartile: f64,
    /// The upper quartile of all rounds.
    pub upper_quartile: f64,
    /// The largest value of all rounds.
    pub max: f64,
    /// The ratio of the first rival's value to this rival's value: the median of the ratios of all rounds. `None` if either value
    /// is zero.
    pub first_to_this: Option<f64>,
    /// The ends of the 95 % interval of this ratio: see [`Sample::interval`]. `None` if there are too few rounds.
    #[serde(default)]
    pub first_to_this_interval: Option<(f64, f64)>,
    /// The ratio of the medians of the first rival and of this rival. `None` if either value is zero.
    pub first_to_this_medians: Option<f64>,
}

impl Figure {
    /// Creates the figure of rivals that took turns. Their samples have one value for each round.
    pub fn new(name: &str, unit: &str, turn: &str, rivals: &[&str], samples: &[Sample]) -> Figure {
        let first = &samples[0];
        let value = |(rival, sample): (&&str, &Sample)| Value {
            rival: rival.to_string(),
            median: tidy(sample.median()),
            min: tidy(sample.quantile(0.0)),
            lower_quartile: tidy(sample.quantile(0.25)),
            upper_quartile: tidy(sample.quantile(0.75)),
            max: tidy(sample.quantile(1.0)),
            first_to_this: ratio(first.over(sample).median()),
            first_to_this_interval: first
                .over(sample)
                .interval()
                .and_then(|(low, high)| Some((ratio(low)?, ratio(high)?))),
            first_to_this_medians: ratio(first.median() / sample.median()),
        };
        Figure {
            name: name.into(),
            at: None,
            unit: unit.into(),
            rounds: first.values().len(),
            turn: turn.into(),
            values: rivals.iter().zip(samples).map(value).collect(),
        }
    }

    /// Returns the figure, placed on an axis.
    pub fn at(mut self, axis: &str, place: u64) -> Figure {
        self.at = Some(AxisPlace { axis: axis.into(), place });
        self
    }

    /// Returns the name, with the place on the axis.
    pub fn title(&self) -> String {
        match &self.at {
            None => self.name.clone(),
            Some(at) => format!("{}, {}: {}", self.name, at.axis, group(at.place)),
        }
    }
}

impl BenchReport {
    /// Writes the report to the directory, replacing an earlier report.
    pub fn write(&self, directory: &Path) {
        fs::create_dir_all(directory).expect("the directory of the results can be made");
        let text = serde_json::to_string_pretty(self).expect("a report is JSON") + "\n";
        let path = directory.join(format!("{}.json", self.part));
        fs::write(&path, text).unwrap_or_else(|e| panic!("cannot write {}: {e}", path.display()));
    }

    /// Returns the reports in a directory, in the order of the parts.
    pub fn read_all(directory: &Path) -> Vec<BenchReport> {
        let read = |part: &&str| {
            let path = directory.join(format!("{part}.json"));
            let text = fs::read_to_string(&path).ok()?;
            Some(serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
        };
        PARTS.iter().filter_map(read).collect()
    }

    /// Returns the figures with this name, along their axis.
    pub fn along(&self, name: &str) -> Vec<&Figure> {
        self.figures.iter().filter(|figure| figure.name == name).collect()
    }
}

/// Returns a whole number with a comma before every three digits.
pub fn group(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}

/// Rounds to five digits, because no measurement is more accurate.
fn tidy(value: f64) -> f64 {
    format!("{value:.4e}").parse().expect("a number as it was printed")
}

fn ratio(value: f64) -> Option<f64> {
    (value.is_finite() && value > 0.0).then(|| tidy(value))
}
