//! Each rule is needed: without it, the search or a directed schedule fails. The page docs/fleet-rules.md shows how.

use crate::page;
use crate::rules::{RuleSection, SECTIONS};

fn section(title: &str) -> &'static RuleSection {
    SECTIONS.iter().find(|section| section.title == title).expect("there is such a section")
}

#[track_caller]
fn needed(title: &str) {
    page::compare(title, &page::section(section(title)));
}

#[test]
fn every_rule_about_claims_is_needed_caught() {
    needed("Claims");
}

#[test]
fn every_rule_about_renewals_is_needed_caught() {
    needed("Renewals");
}

#[test]
fn every_rule_about_failovers_is_needed_caught() {
    needed("Failovers and restores");
}

#[test]
fn every_rule_about_spare_worker_ids_is_needed_caught() {
    needed("Spare worker IDs");
}

#[test]
fn every_rule_about_layouts_is_needed_caught() {
    needed("Layouts");
}

#[test]
fn every_rule_about_reservations_is_needed_caught() {
    needed("Reservations");
}

#[test]
fn every_rule_about_servers_is_needed_caught() {
    needed("Servers");
}

/// With the environment variable `FLEET_PAGE`, this test writes the page.
#[test]
fn the_page_names_every_rule_once() {
    if std::env::var("FLEET_PAGE").is_ok() {
        page::write(SECTIONS);
    }
    page::check_texts(SECTIONS);
    // A fault of the random worlds is a rule.
    let (_, faults) = include_str!("../fleet/faults.rs").split_once("    None,\n").expect("the faults begin with none");
    let (faults, _) = faults.split_once("\n}\n").expect("the faults end");
    let faults: Vec<_> = faults.lines().filter_map(|line| line.trim().strip_suffix(',')).collect();
    let rules = SECTIONS.iter().flat_map(|section| section.rules).map(|rule| format!("{:?}", rule.fault));
    let mut rules: Vec<_> = rules.collect();
    for fault in &faults {
        assert_eq!(rules.iter().filter(|rule| *rule == fault).count(), 1, "{fault}");
    }
    rules.retain(|rule| !faults.contains(&rule.as_str()));
    assert!(rules.is_empty(), "{rules:?}");
}
