//! The Markdown table of all figures.

use std::fmt::Write;

use crate::report::{BenchReport, Figure, group};

/// The maximum number of places on an axis that the table lists individually.
const AXIS_MAX: usize = 7;

/// Renders all reports as one table, below a list of the machines and settings.
pub fn render(reports: &[BenchReport]) -> String {
    let mut text = String::from("# Figures\n\n");
    let mut line = |line: &str| writeln!(text, "{line}").expect("a string can be written");
    line("`make bench` generates this table. In each round, the rivals take turns, and each round begins with");
    line("a different rival. An additional first round warms up the rivals, and is not counted. The column");
    line("\"first / this\" contains the value of the first rival of a figure, divided by the value of the rival");
    line("in the row. It is the median of the ratios from the individual rounds. These ratios depend less on");
    line("the machine than the values do. The column \"95% CI\" contains the 95% confidence interval of this");
    line("ratio, which is based on order statistics. The ends of the interval are two of the ratios from the");
    line("individual rounds, so it does not depend on an assumption about the distribution of the ratios.");
    line("Figures from fewer than six rounds have no interval. If a figure was measured at more than seven");
    line("points of an axis, the table contains only the first and the last point. The JSON files in this");
    line("directory contain all points and the quartiles.\n");
    // Parts that ran on the same machine with the same settings share a line.
    let mut groups: Vec<(Vec<&str>, String)> = Vec::new();
    for report in reports {
        let machine = &report.machine;
        let ran_on = format!(
            "{}; {}; {}; {}",
            machine.hardware(),
            if machine.revision.is_empty() {
                "revision not recorded".into()
            } else {
                format!("revision {}", machine.revision)
            },
            machine.versions.join(", "),
            machine.settings.iter().map(|setting| format!("`{setting}`")).collect::<Vec<_>>().join(", ")
        );
        match groups.iter_mut().find(|(_, known)| *known == ran_on) {
            Some((parts, _)) => parts.push(&report.part),
            None => groups.push((vec![&report.part], ran_on)),
        }
    }
    for (parts, ran_on) in &groups {
        line(&format!("- {}: {ran_on}", parts.join(", ")));
    }
    for report in reports {
        for note in &report.notes {
            line(&format!("- {}: {note}", report.part));
        }
    }
    line("\n| part | figure | key | median | min .. max | first / this | 95% CI | rounds | a turn |");
    line("| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | --- |");
    for report in reports {
        for figure in report.figures.iter().filter(|figure| listed(report, figure)) {
            for value in &figure.values {
                line(&format!(
                    "| {} | {}, {} | {} | {} | {} .. {} | {} | {} | {} | {} |",
                    report.part,
                    figure.title(),
                    figure.unit,
                    value.rival,
                    number(value.median),
                    number(value.min),
                    number(value.max),
                    value.first_to_this.map_or("-".into(), |ratio| format!("{ratio:.3}")),
                    value.first_to_this_interval.map_or("-".into(), |(low, high)| format!("{low:.3} .. {high:.3}")),
                    figure.rounds,
                    figure.turn
                ));
            }
        }
    }
    text
}

/// Returns true if the table contains the figure. For a long axis, the table contains only both ends.
fn listed(report: &BenchReport, figure: &Figure) -> bool {
    let along = report.along(&figure.name);
    let places = |figure: &Figure| figure.at.as_ref().map(|at| at.place);
    along.len() <= AXIS_MAX || [along.first(), along.last()].iter().flatten().any(|end| places(end) == places(figure))
}

/// Formats a value with at least three digits.
pub fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{}{}", if value < 0.0 { "-" } else { "" }, group(size.round() as u64)),
        size if size >= 10.0 => format!("{value:.1}"),
        0.0 => "0".into(),
        size if size >= 0.01 => format!("{value:.2}"),
        _ => format!("{value:.1e}"),
    }
}
