//! The page docs/fleet-rules.md.

use std::fmt::Write;

use crate::bounds::{ALL, Bounds};
use crate::faults::FleetFault;
use crate::rules::{By, Rule, RuleSection};
use crate::search::{Extent, FailedSchedule, search};
use crate::state::SearchState;
use crate::step::Step;
use crate::words::{grouped, list, sentences};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/fleet-rules.md");
const WIDTH: usize = 130;

/// What follows each rule.
const WITHOUT: &str = "Without this rule, the following schedule goes wrong";

/// The heading of the table of searches.
pub const SEARCHED: &str = "What the search covers";

/// Returns the states of a schedule, up to the first one that fails. A step that does not make sense changes nothing.
pub fn play(fault: FleetFault, bounds: &Bounds, schedule: &[Step]) -> Vec<SearchState> {
    let mut states = vec![SearchState::new(fault, bounds)];
    for step in schedule {
        let last = states.last().expect("there is a first state");
        if last.failure().is_some() {
            break;
        }
        states.push(if last.world.makes_sense(*step) { last.after(*step) } else { last.clone() });
    }
    states
}

/// Returns lines of a limited width. All lines but the first one are indented.
fn wrapped(text: &str, indent: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is a line");
        if !line.is_empty() && line.len() + 1 + word.len() > WIDTH {
            lines.push(format!("{indent}{word}"));
        } else {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
        }
    }
    lines.join("\n") + "\n"
}

fn free(bounds: &Bounds) -> String {
    let workers: Vec<_> = bounds.free.iter().map(u32::to_string).collect();
    let all = 1 << bounds.worker_bits;
    match workers.as_slice() {
        [one] => format!("{all} worker IDs, of which only {one} is free"),
        some if some.len() == all => {
            format!("{all} worker IDs, {} of which are free", if all == 2 { "both" } else { "all" })
        }
        some => format!("{all} worker IDs, of which {} are free", list(some)),
    }
}

/// Checks that a rule is needed, and returns what the page says about it.
pub fn part(rule: &Rule) -> String {
    let (bounds, schedule, found) = match rule.by {
        By::Search(bounds) => match search(rule.fault, bounds, bounds.thorough.max(9)) {
            Ok(extent) => panic!("{:?}: nothing fails in {extent:?}", rule.fault),
            Err(FailedSchedule { schedule, extent: Extent { states, .. }, .. }) => (
                bounds,
                schedule,
                format!(
                    "This is the shortest schedule that goes wrong. The search finds it after visiting {} states.",
                    grouped(states)
                ),
            ),
        },
        By::Directed(bounds, schedule) => (
            bounds,
            schedule.to_vec(),
            "The search does not reach this schedule. None of the steps can be left out.".into(),
        ),
    };
    let states = play(rule.fault, bounds, &schedule);
    let failure = states.last().and_then(SearchState::failure);
    println!("{:?}: {failure:?} after {schedule:?}. {found}", rule.fault);
    assert_eq!(failure, Some(rule.fails), "{:?}", rule.fault);
    assert_eq!(states.len(), schedule.len() + 1, "{:?}: it fails before the last step", rule.fault);
    // The rule is the cause: with all rules, the same schedule holds.
    let with = play(FleetFault::None, bounds, &schedule);
    assert_eq!(with.last().and_then(SearchState::failure), None, "{:?}", rule.fault);
    for at in 0..schedule.len() {
        let rest = [&schedule[..at], &schedule[at + 1..]].concat();
        let failure = play(rule.fault, bounds, &rest).last().and_then(SearchState::failure);
        assert_eq!(failure, None, "{:?}: step {} is not needed", rule.fault, at + 1);
    }
    let (steps, result) = sentences(&states, &schedule);
    let mut part = wrapped(&format!("**{}** {WITHOUT} in a fleet with {}:", rule.text, free(bounds)), "");
    part.push('\n');
    for (number, step) in (1..).zip(steps) {
        let number = format!("{number}. ");
        part.push_str(&wrapped(&format!("{number}{step}"), &" ".repeat(number.len())));
    }
    let _ = write!(part, "\n{}", wrapped(&format!("{result} {found}"), ""));
    part
}

pub fn section(section: &RuleSection) -> String {
    let parts: Vec<_> = section.rules.iter().map(part).collect();
    parts.join("\n")
}

fn row(bounds: &Bounds, extent: Extent) -> String {
    format!("| {} | {} | {} | {} |\n", bounds.name, bounds.what, extent.depth, grouped(extent.states))
}

/// Searches within bounds with all rules. Nothing may fail.
pub fn hold(bounds: &Bounds, depth: usize) -> Extent {
    match search(FleetFault::None, bounds, depth) {
        Ok(extent) => {
            println!("{}: {extent:?}", bounds.name);
            extent
        }
        Err(found) => panic!("{}: {found:?}", bounds.name),
    }
}

pub fn table() -> String {
    let rows: String = ALL.iter().map(|bounds| row(bounds, hold(bounds, bounds.thorough))).collect();
    format!("| | what happens | steps | states |\n| --- | --- | --- | --- |\n{rows}")
}

fn read() -> String {
    std::fs::read_to_string(PAGE).expect("docs/fleet-rules.md can be read")
}

/// Returns the text below a heading of the page.
fn below(page: &str, title: &str) -> String {
    let heading = format!("\n## {title}\n\n");
    let (_, rest) = page.split_once(&heading).unwrap_or_else(|| panic!("docs/fleet-rules.md has no section {title:?}"));
    rest.split("\n## ").next().unwrap_or_default().trim_end().to_owned() + "\n"
}

const ADVICE: &str = "FLEET_PAGE=write cargo nextest run -p flake --test exhaustive the_page";

#[track_caller]
pub fn compare(title: &str, expected: &str) {
    assert!(
        below(&read(), title) == expected,
        "section {title:?} of docs/fleet-rules.md is not what the search finds. Run {ADVICE}. Expected:\n{expected}"
    );
}

/// Checks one row of the table of searches.
#[track_caller]
pub fn compare_row(bounds: &Bounds, extent: Extent) {
    let row = row(bounds, extent);
    assert!(below(&read(), SEARCHED).contains(&row), "the page has not this row. Run {ADVICE}.\n{row}");
}

/// Writes the page again. The text above the table of searches stays.
pub fn write(sections: &[RuleSection]) {
    let page = read();
    let (top, _) = page.split_once(&format!("\n## {SEARCHED}\n")).expect("the heading of the table");
    let introduction = below_introduction(&page);
    let mut text = format!("{}\n\n## {SEARCHED}\n\n{introduction}{}", top.trim_end(), table());
    for one in sections {
        let _ = write!(text, "\n## {}\n\n{}", one.title, section(one));
    }
    std::fs::write(PAGE, text).expect("docs/fleet-rules.md can be written");
}

/// The text between the heading of the table of searches and the table.
fn below_introduction(page: &str) -> String {
    let text = below(page, SEARCHED);
    text.split("| |").next().unwrap_or_default().trim_end().to_owned() + "\n\n"
}

/// Checks what the page says without a search: every rule, in order.
pub fn check_texts(sections: &[RuleSection]) {
    let page = read();
    for section in sections {
        let text = below(&page, section.title).replace('\n', " ");
        let mut rest = text.as_str();
        for rule in section.rules {
            let bold = format!("**{}**", rule.text);
            let (_, after) =
                rest.split_once(&bold).unwrap_or_else(|| panic!("docs/fleet-rules.md has not: {bold}. Run {ADVICE}"));
            rest = after;
        }
        assert_eq!(text.matches("Without this rule").count(), section.rules.len(), "{}", section.title);
    }
}
