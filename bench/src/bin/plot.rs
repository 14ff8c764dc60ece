//! `make bench-plot`: plots the results of `make bench`.

use std::path::{Path, PathBuf};

use bench::chart::{Chart, ChartSeries, Quartiles};
use bench::effort;
use bench::report::{BenchReport, Figure, Value};

/// The charts with lines along an axis: the file, the title, the unit, whether the axis is logarithmic, and the name of the
/// figures.
const LINES: [(&str, &str, &str, &str, bool, &str); 12] = [
    ("storage", "insert", "INSERT into a growing table", "ms", false, "INSERT into a growing table"),
    ("storage", "wal", "WAL of INSERTs into a growing table", "bytes a row", false, "WAL of INSERTs"),
    ("oltp", "select", "Queries that draw one ID", "transactions per s", false, "SELECT, transactions"),
    ("oltp", "select-p99", "Queries that draw one ID: 99th percentile of the time", "µs", true, "SELECT, p99"),
    ("oltp", "insert", "INSERT of one row", "transactions per s", false, "INSERT, transactions"),
    ("oltp", "insert-p99", "INSERT of one row: 99th percentile of the time", "µs", true, "INSERT, p99"),
    ("contention", "ids", "Sessions that draw IDs without a pause", "IDs per s", false, "IDs in bulk"),
    ("contention", "cpu", "CPU time of an ID, with the loop around it", "ns", false, "CPU time of an ID in bulk"),
    (
        "contention",
        "retries",
        "Attempts to take an ID that another session took first",
        "per ID",
        false,
        "retries of an ID in bulk",
    ),
    ("segments", "bulk", "Sessions that draw numbers without a pause", "numbers per s", false, "numbers in bulk"),
    ("serials", "insert", "INSERT of a row with a serial", "transactions per s", false, "INSERT, transactions"),
    (
        "serials",
        "work",
        "INSERT of a row with a serial, and 5 ms of other work",
        "transactions per s",
        true,
        "INSERT and 5 ms of other work, transactions",
    ),
];

/// A chart with bars: the file, the title, the unit, whether the axis is logarithmic, and the figures with their names in the
/// legend.
type Bars = (&'static str, &'static str, &'static str, &'static str, bool, &'static [(&'static str, &'static str)]);
const BARS: [Bars; 10] = [
    (
        "cost",
        "id",
        "Cost of an ID, one session",
        "ns",
        true,
        &[("cost of an ID, one call a row", "one call a row"), ("cost of an ID, ten calls a row", "ten calls a row")],
    ),
    ("conceal", "id", "Cost of concealing an ID, one session", "ns", true, &[("cost of concealing an ID", "")]),
    (
        "crates",
        "id",
        "Cost of an ID in one process, without PostgreSQL",
        "ns",
        false,
        &[("cost of an ID, one thread", "one thread"), ("cost of an ID, two threads", "each of two threads")],
    ),
    (
        "segments",
        "number",
        "Cost of a number, one session",
        "ns",
        true,
        &[
            ("cost of a number, one call a row", "one call a row"),
            ("cost of a number, ten calls a row", "ten calls a row"),
        ],
    ),
    (
        "storage",
        "bulk",
        "One INSERT of many rows into an empty table",
        "s",
        false,
        &[("bulk INSERT into an empty table", "")],
    ),
    (
        "copy",
        "time",
        "COPY of a million rows",
        "s",
        false,
        &[
            ("COPY, two columns, time", "two columns"),
            ("COPY, six columns, two more indexes, time", "six columns, two more indexes"),
        ],
    ),
    (
        "copy",
        "wal",
        "WAL of a COPY",
        "bytes a row",
        false,
        &[
            ("COPY, two columns, WAL", "two columns"),
            ("COPY, six columns, two more indexes, WAL", "six columns, two more indexes"),
        ],
    ),
    (
        "storage",
        "point",
        "Lookup of a row by its key",
        "µs",
        false,
        &[("lookup of a row by its key, within a join", "")],
    ),
    (
        "storage",
        "range",
        "Fetch of 1,000 rows",
        "µs",
        false,
        &[
            ("fetch of 1,000 rows that follow a random one", "from a random row on"),
            ("fetch of the latest 1,000 rows", "the latest"),
        ],
    ),
    (
        "storage",
        "indexes",
        "Indexes that lookups by key and by time take",
        "bytes a row",
        false,
        &[("all indexes that finding rows by key and by time takes", "")],
    ),
];

fn main() {
    let directory = effort::results();
    let reports = BenchReport::read_all(&directory);
    if reports.is_empty() {
        eprintln!("error: there is nothing to draw; make bench first");
        std::process::exit(1);
    }
    let find = |part: &str| reports.iter().find(|report| report.part == part);
    for (part, name, title, unit, log, figure) in LINES {
        if let Some(report) = find(part) {
            lines(report, &file(&directory, part, name), title, unit, log, figure);
        }
    }
    for (part, name, title, unit, log, figures) in BARS {
        if let Some(report) = find(part) {
            let path = file(&directory, part, name);
            let groups: Vec<_> =
                figures.iter().filter_map(|(figure, group)| Some((*group, *report.along(figure).first()?))).collect();
            bars(report, &path, title, unit, log, &groups);
        }
    }
    if let Some(report) = find("storage") {
        let figures = report.along("index of the primary key");
        let names: Vec<_> = figures.iter().map(|figure| figure.turn.clone()).collect();
        let groups: Vec<_> = names.iter().map(String::as_str).zip(figures).collect();
        bars(
            report,
            &file(&directory, "storage", "index"),
            "Size of the primary key's index",
            "bytes a row",
            false,
            &groups,
        );
    }
    if let Some(report) = find("contention") {
        latencies(report, &file(&directory, "contention", "latency"));
    }
    if let Some(report) = find("failovers") {
        failovers(
            report,
            &file(&directory, "failovers", "duplicates"),
            "duplicates: ",
            "Duplicate IDs in ten failovers",
            "IDs",
        );
        failovers(
            report,
            &file(&directory, "failovers", "gaps"),
            "longest gap in writes: ",
            "Longest gap in writes",
            "s",
        );
    }
    if let Some(report) = find("wire") {
        wire(report, &file(&directory, "wire", "one"), "one ID a request", "IDs fetched one at a time");
        wire(report, &file(&directory, "wire", "batch"), "1,000 IDs a request", "IDs fetched by the thousand");
    }
}

fn file(directory: &Path, part: &str, name: &str) -> PathBuf {
    directory.join(format!("{part}-{name}.svg"))
}

/// Returns the machine, the versions, and the meaning of a value.
fn footer(report: &BenchReport, figure: &Figure) -> [String; 2] {
    let spread = if figure.rounds > 1 { ", medians and quartiles" } else { "" };
    let rounds = if figure.rounds > 1 { "rounds" } else { "round" };
    [
        format!("{}; {}", report.machine.hardware(), report.machine.versions.join(", ")),
        format!("{} {rounds} of {}{spread}", figure.rounds, figure.turn),
    ]
}

fn point(value: &Value) -> Quartiles {
    Quartiles { median: value.median, low: value.lower_quartile, high: value.upper_quartile }
}

fn lines(report: &BenchReport, path: &Path, title: &str, unit: &str, log: bool, name: &str) {
    let figures = report.along(name);
    let Some(first) = figures.first() else { return };
    draw_lines(report, path, title, unit, log, &figures, by_rival(first, &figures));
}

/// Returns one series for each rival of the first figure, with a point for each figure.
fn by_rival(first: &Figure, figures: &[&Figure]) -> Vec<ChartSeries> {
    let series = |(n, value): (usize, &Value)| ChartSeries {
        name: value.rival.clone(),
        points: figures.iter().map(|figure| figure.values.get(n).map(point)).collect(),
    };
    first.values.iter().enumerate().map(series).collect()
}

fn draw_lines(
    report: &BenchReport,
    path: &Path,
    title: &str,
    unit: &str,
    log: bool,
    figures: &[&Figure],
    series: Vec<ChartSeries>,
) {
    let axis = figures[0].at.as_ref().map_or("", |at| &at.axis);
    let places = figures.iter().filter_map(|figure| Some(figure.at.as_ref()?.place.to_string()));
    Chart { title, unit, log, places: places.collect(), axis, series, footer: footer(report, figures[0]) }.lines(path);
}

fn bars(report: &BenchReport, path: &Path, title: &str, unit: &str, log: bool, groups: &[(&str, &Figure)]) {
    let Some((_, first)) = groups.first() else { return };
    let places: Vec<_> = first.values.iter().map(|value| value.rival.clone()).collect();
    let series = groups.iter().map(|(name, figure)| ChartSeries {
        name: name.to_string(),
        points: places
            .iter()
            .map(|place| figure.values.iter().find(|value| value.rival == *place).map(point))
            .collect(),
    });
    let series = series.collect();
    Chart { title, unit, log, places, axis: "", series, footer: footer(report, first) }.bars(path);
}

/// Plots the tail of the latencies, next to the tail of the latencies of `clock_timestamp()`.
fn latencies(report: &BenchReport, path: &Path) {
    let mut series = Vec::new();
    let mut along = Vec::new();
    for kind in ["slowest call", "p99.9"] {
        let figures = report.along(&format!("latency inside the function, {kind}"));
        let Some(first) = figures.first() else { return };
        for (n, value) in first.values.iter().enumerate() {
            // The clock has a resolution of one microsecond, so smaller values cannot be drawn on this axis.
            let points = figures.iter().map(|figure| figure.values.get(n).map(|value| at_least(1.0, point(value))));
            series.push(ChartSeries { name: format!("{}, {kind}", value.rival), points: points.collect() });
        }
        along = figures;
    }
    let title = "Latency inside the function while the mark is extended";
    draw_lines(report, path, title, "µs", true, &along, series);
}

fn at_least(least: f64, point: Quartiles) -> Quartiles {
    Quartiles { median: point.median.max(least), low: point.low.max(least), high: point.high.max(least) }
}

/// Plots the figures whose names begin with this text, one place for each failover.
fn failovers(report: &BenchReport, path: &Path, begin: &str, title: &str, unit: &str) {
    let figures: Vec<_> = report.figures.iter().filter(|figure| figure.name.starts_with(begin)).collect();
    let Some(first) = figures.first() else { return };
    let places = figures.iter().map(|figure| figure.name.trim_start_matches(begin).to_string()).collect();
    let series = by_rival(first, &figures);
    Chart { title, unit, log: false, places, axis: "", series, footer: footer(report, first) }.bars(path);
}

/// Plots the routes to the server, for one size of request.
fn wire(report: &BenchReport, path: &Path, size: &str, title: &str) {
    let of_size = |figure: &&Figure| figure.name.starts_with(size) && figure.name.ends_with(", IDs");
    let figures: Vec<_> = report.figures.iter().filter(of_size).collect();
    let route = |figure: &Figure| {
        figure.name.trim_start_matches(size).trim_start_matches(", ").trim_end_matches(", IDs").to_string()
    };
    let Some(first) = figures.first() else { return };
    let (series, places) = (by_rival(first, &figures), figures.iter().map(|figure| route(figure)).collect());
    Chart { title, unit: "IDs per s", log: false, places, axis: "", series, footer: footer(report, first) }.bars(path);
}
