//! Medians, and the tables they are printed in.

/// One figure, measured again and again.
#[derive(Default)]
pub struct Sample(Vec<f64>);

impl Sample {
    /// Adds a measurement.
    pub fn push(&mut self, value: f64) {
        self.0.push(value);
        self.0.sort_by(f64::total_cmp);
    }

    /// The middle value, the lower of two; panics without any.
    pub fn median(&self) -> f64 {
        self.0[(self.0.len() - 1) / 2]
    }

    /// Smallest and largest value.
    pub fn spread(&self, decimals: usize) -> String {
        format!("{:.decimals$} .. {:.decimals$}", self.0[0], self.0[self.0.len() - 1])
    }
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
