//! The files for the exporter and for Prometheus are installed where docs/monitoring.md says, and its commands copy them.

use std::fs;

use cluster::{Host, output};

use crate::monitoring::alerts::promtool;
use crate::monitoring::exporter::scratch;
use crate::monitoring::page;

#[test]
fn the_commands_of_the_page_copy_the_files_of_a_server() {
    let scratch = scratch();
    let commands = page::commands().replace("/etc/prometheus", &scratch.0.display().to_string());
    output(&mut Host::get().shell(&format!("set -e\n{commands}")));
    let copied = |name: &str| fs::read_to_string(scratch.0.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert_eq!(copied("snowflake_pg.yml"), page::queries(), "run scripts/install");
    assert_eq!(copied("snowflake_registry.yml"), page::registry_queries(), "run scripts/install");
    let alerts = copied("snowflake_pg_alerts.yml");
    assert!(!alerts.contains(".invalid"), "{alerts}");
    let runbooks = alerts.matches("runbook_url: \"https://wiki.example/snowflake_pg/docs/bad-day.html#").count();
    assert_eq!(runbooks, page::after(&alerts, "- alert: ").len());
    promtool("check", "alerts.yml", &[("alerts.yml", &alerts)]).unwrap();
}
