//! The annotations of the alerts: they say what happened and what to do, and lead to a section of docs/bad-day.md that lists the alert.

use std::collections::BTreeSet;

use cluster::{assert_caught, ensure};

use crate::links::slug;
use crate::monitoring::alerts::promtool;
use crate::monitoring::page::{self, after};

/// Two primaries with a worker ID, a standby of one of them, and a server with a different worker ID.
const TWINS: &str = "rule_files: [rules.yaml]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - {series: \"snowflake_pg_server_primary{instance='db3:9187', server='db3:5432', worker_id='7', datacenter_id='0'}\", values: 1+0x9}
      - {series: \"snowflake_pg_server_primary{instance='db1:9187', worker_id='7', datacenter_id='0'}\", values: 1+0x9}
      - {series: \"snowflake_pg_server_primary{instance='db2:9187', server='db2:5432', worker_id='7', datacenter_id='0'}\", values: 0+0x9}
      - {series: \"snowflake_pg_server_primary{instance='db4:9187', server='db4:5432', worker_id='8', datacenter_id='0'}\", values: 1+0x9}
    alert_rule_test:
      - eval_time: 1m
        alertname: SnowflakeSameWorkerID
        exp_alerts:
          - exp_labels: {severity: critical, worker_id: '7', datacenter_id: '0'}
            exp_annotations:
              summary: '2 primaries have worker ID 7 and can issue the same IDs: db1:9187 db3:9187 (db3:5432)'
";

/// The rules with no other annotation than the summary, because promtool compares all of them.
fn with_summaries(rules: &str) -> String {
    let others = ["description: ", "runbook_url: "];
    let kept = rules.lines().filter(|line| !others.iter().any(|other| line.trim().starts_with(other)));
    kept.map(|line| format!("{line}\n")).collect()
}

#[test]
fn the_alert_about_a_worker_id_names_both_servers() {
    let check = |rules: &str| promtool("test", "cases.yaml", &[("rules.yaml", rules), ("cases.yaml", TWINS)]);
    let rules = with_summaries(&page::rules());
    check(&rules).unwrap();
    assert_caught(check(&rules.replacen("{{ .Labels.instance }}", "{{ .Value }}", 1)), "FAILED");
    assert_caught(check(&rules.replacen("== 1\" $labels", ">= 0\" $labels", 1)), "FAILED");
}

/// Returns the first columns of the tables in the section to which an anchor leads.
fn first_column(text: &str, anchor: &str) -> Option<String> {
    let mut sections = text.split("\n## ").skip(1);
    let section = sections.find(|section| section.lines().next().map(slug).as_deref() == Some(anchor))?;
    Some(section.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next()).collect())
}

/// Checks that each alert has all annotations, and that its runbook is the section of the page that lists it.
fn check_runbooks(rules: &str, text: &str) -> Result<(), String> {
    let begin = concat!(env!("CARGO_PKG_REPOSITORY"), "/docs/bad-day.html#");
    let alerts: Vec<&str> = rules.split("- alert: ").skip(1).collect();
    ensure!(alerts.len() > 20, "{} alerts", alerts.len());
    for alert in alerts {
        let name = alert.lines().next().unwrap_or_default();
        for annotation in ["summary", "description"] {
            let given = alert.lines().any(|line| line.trim().starts_with(&format!("{annotation}: ")));
            ensure!(given, "{name} has no {annotation}");
        }
        let runbook = after(alert, "runbook_url: ").first().copied().unwrap_or_default().trim_matches('"');
        let anchor = runbook.strip_prefix(begin).ok_or(format!("the runbook of {name} is {runbook:?}"))?;
        let listed = first_column(text, anchor).ok_or(format!("{name}: the page has no section {anchor}"))?;
        ensure!(listed.contains(&format!("`{name}`")), "section {anchor} does not list {name}");
    }
    Ok(())
}

#[test]
fn each_alert_leads_to_the_section_that_lists_it() {
    let (rules, text) = (page::rules(), cluster::page("docs/bad-day.md"));
    check_runbooks(&rules, &text).unwrap();
    let other = |from: &str, to: &str| check_runbooks(&rules.replacen(from, to, 1), &text);
    assert_caught(other("#the-registry", "#no-ids"), "does not list SnowflakeFenced");
    assert_caught(other("#no-ids", "#no-such-section"), "the page has no section no-such-section");
    assert_caught(other("snowflake-pg.invalid", "snowflake.invalid"), "the runbook of SnowflakeSameWorkerID is");
    assert_caught(other("description: ", "describe: "), "SnowflakeSameWorkerID has no description");
}

/// The page about monitoring says of each alert why it fires then, and of no other.
#[test]
fn the_page_describes_each_alert() {
    let rules = page::rules();
    let described: BTreeSet<String> =
        page::described().into_iter().filter(|name| name.starts_with("Snowflake")).collect();
    let alerts: BTreeSet<String> = after(&rules, "- alert: ").into_iter().map(String::from).collect();
    assert_eq!(described, alerts);
}
