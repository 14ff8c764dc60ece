//! Medians and quantiles, and the tables in which they are printed.

/// The repeated measurements of one figure.
#[derive(Clone, Debug, Default)]
pub struct Sample(Vec<f64>);

impl Sample {
    /// Adds a measurement.
    pub fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    /// Returns the measurements, in the order in which they were made.
    pub fn values(&self) -> &[f64] {
        &self.0
    }

    /// Returns the smallest value that at least this part of all values does not exceed. Panics if there are no values.
    pub fn quantile(&self, part: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted[rank(part, sorted.len() as u64) as usize]
    }

    /// Returns the median, which is the lower of two middle values. Panics if there are no values.
    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// Returns an interval that contains the median of what was measured with a probability of at least 95 %, whatever its distribution.
    /// Its ends are two of the measurements: of `n` sorted ones, the `k`th from below and the `k`th from above. Fewer than `k` of them
    /// are below the median with the probability with which a coin that is tossed `n` times shows heads fewer than `k` times, and `k` is
    /// the largest number for which this is at most 2.5 %. Returns `None` for fewer than six measurements, for which there is no `k`.
    pub fn interval(&self) -> Option<(f64, f64)> {
        let count = self.0.len();
        let (mut exactly, mut fewer, mut k) = (0.5f64.powi(count as i32), 0.0, 0);
        while fewer + exactly <= 0.025 {
            fewer += exactly;
            exactly *= (count - k) as f64 / (k + 1) as f64;
            k += 1;
        }
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        (k > 0 && sorted.iter().all(|value| value.is_finite())).then(|| (sorted[k - 1], sorted[count - k]))
    }

    /// Returns the ratio of each measurement to the other sample's measurement of the same round.
    pub fn over(&self, other: &Sample) -> Sample {
        self.0.iter().zip(&other.0).map(|(mine, theirs)| mine / theirs).collect()
    }

    /// Returns the smallest and the largest value as text.
    pub fn spread(&self, decimals: usize) -> String {
        format!("{:.decimals$} .. {:.decimals$}", self.quantile(0.0), self.quantile(1.0))
    }
}

impl FromIterator<f64> for Sample {
    fn from_iter<T: IntoIterator<Item = f64>>(values: T) -> Sample {
        Sample(values.into_iter().collect())
    }
}

/// How often each value occurred. This type stores millions of measurements in little memory.
#[derive(Clone, Debug, Default)]
pub struct Histogram(std::collections::BTreeMap<i64, u64>);

impl Histogram {
    /// Adds a value that occurred this many times.
    pub fn add(&mut self, value: i64, times: u64) {
        *self.0.entry(value).or_default() += times;
    }

    /// Adds the values of other counts.
    pub fn merge(&mut self, other: &Histogram) {
        other.0.iter().for_each(|(value, times)| self.add(*value, *times));
    }

    /// Returns the number of values.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// Returns the part of the values that are not above a limit, or 0 if there are no values.
    pub fn part(&self, limit: i64) -> f64 {
        self.0.range(..=limit).map(|(_, times)| times).sum::<u64>() as f64 / self.total().max(1) as f64
    }

    /// Returns the smallest value that at least this part of all values does not exceed. Panics if there are no values.
    pub fn quantile(&self, part: f64) -> f64 {
        let mut left = rank(part, self.total());
        for (value, times) in &self.0 {
            if left < *times {
                return *value as f64;
            }
            left -= times;
        }
        panic!("a quantile of nothing")
    }
}

/// Returns the position of the quantile of this many ordered values, counted from zero.
fn rank(part: f64, count: u64) -> u64 {
    ((part * count as f64).ceil() as u64).saturating_sub(1)
}

/// Begins a Markdown table.
pub fn heading(title: &str, columns: &[&str]) {
    println!("\n### {title}\n");
    row(columns);
    println!("|{}", " --- |".repeat(columns.len()));
}

/// Prints a row of a Markdown table.
pub fn row(cells: &[&str]) {
    println!("| {} |", cells.join(" | "));
}
