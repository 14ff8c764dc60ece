//! `make bench`: measures all parts of the benchmark, or the parts named as arguments, and renders the table of all results.
//! Every figure is a median over rounds in which all rivals take turns on one server, so that other load on the machine affects
//! all rivals. Compare ratios, not nanoseconds.

use bench::report::{BenchReport, PARTS};
use bench::{
    conceal, contention, copy, cost, crates, effort, failovers, fleet, oltp, portable, segments, serials,
    service_level, storage, table, wire,
};

fn main() {
    let mut parts: Vec<String> = std::env::args().skip(1).collect();
    if parts.is_empty() {
        parts = PARTS.map(String::from).to_vec();
    }
    if let Some(unknown) = parts.iter().find(|part| !PARTS.contains(&part.as_str())) {
        eprintln!("error: there is no part {unknown} of the benchmark, only {}", PARTS.join(", "));
        std::process::exit(1);
    }
    let directory = effort::results();
    for part in &parts {
        let report = match part.as_str() {
            "cost" => cost::run(),
            "conceal" => conceal::run(),
            "crates" => crates::run(),
            "storage" => storage::run(),
            "copy" => copy::run(),
            "oltp" => oltp::run(),
            "contention" => contention::run(),
            "wire" => wire::run(),
            "service" => service_level::run(),
            "segments" => segments::run(),
            "serials" => serials::run(),
            "fleet" => fleet::run(),
            "portable" => portable::run(),
            "failovers" => match failovers::run() {
                Some(report) => report,
                None => continue,
            },
            _ => unreachable!("every part has its line"),
        };
        report.write(&directory);
        let table = table::render(&BenchReport::read_all(&directory));
        std::fs::write(directory.join("results.md"), table).expect("the directory of the results can be written");
    }
    println!("bench: ok");
}
