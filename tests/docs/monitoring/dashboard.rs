//! The dashboard for Grafana: its form is the one that Grafana imports, and its panels query metrics that the exporter has.

use std::collections::BTreeSet;

use cluster::{assert_caught, ensure};
use serde_json::Value;

use crate::monitoring::alerts::promtool;
use crate::monitoring::page;

/// The number of columns of Grafana's grid.
const COLUMNS: u64 = 24;

/// The panels that are drawn by Grafana itself, without a plugin that a user would have to install.
const TYPES: [&str; 4] = ["row", "stat", "table", "timeseries"];

/// Returns the dashboard.
fn dashboard() -> String {
    cluster::page("docs/monitoring/dashboard.json")
}

/// Returns the panels of a dashboard.
fn panels(dashboard: &Value) -> Result<&Vec<Value>, String> {
    dashboard["panels"].as_array().filter(|panels| panels.len() > 10).ok_or("there are no panels".into())
}

/// Returns a field that is a text and not empty.
fn text<'a>(value: &'a Value, field: &str) -> Result<&'a str, String> {
    value[field].as_str().filter(|text| !text.is_empty()).ok_or(format!("no {field} in {value}"))
}

/// Returns the expressions of the panels, with the name of the panel and of the query. The interval that Grafana inserts is replaced
/// by one of Prometheus.
fn expressions(dashboard: &Value) -> Result<Vec<(String, String)>, String> {
    let mut found = Vec::new();
    for panel in panels(dashboard)?.iter().filter(|panel| panel["type"] != "row") {
        let targets = panel["targets"].as_array().filter(|targets| !targets.is_empty());
        for target in targets.ok_or(format!("no targets in {panel}"))? {
            let name = format!("panel:{}:{}", panel["id"], text(target, "refId")?);
            found.push((name, text(target, "expr")?.replace("$__rate_interval", "5m")));
        }
    }
    Ok(found)
}

/// Checks the fields that Grafana needs to import a dashboard into any installation.
fn check_fields(dashboard: &Value) -> Result<(), String> {
    ensure!(dashboard["id"].is_null(), "the id belongs to one installation: {}", dashboard["id"]);
    text(dashboard, "title")?;
    ensure!(text(dashboard, "uid")?.len() <= 40, "the uid is longer than 40 characters");
    // The first version whose panels are those of Grafana 10.
    let version = dashboard["schemaVersion"].as_u64();
    ensure!(version >= Some(38), "the version of the schema is {version:?}");
    ensure!(dashboard["tags"].as_array().is_some_and(|tags| !tags.is_empty()), "there are no tags");
    let variables = dashboard["templating"]["list"].as_array().ok_or("there are no variables")?;
    let source = variables.iter().find(|variable| variable["type"] == "datasource");
    let source = source.ok_or("a user cannot choose the data source")?;
    ensure!(source["query"] == "prometheus", "the data source is of type {}", source["query"]);
    let chosen = format!("${{{}}}", text(source, "name")?);
    for panel in panels(dashboard)?.iter().filter(|panel| panel["type"] != "row") {
        let targets = panel["targets"].as_array().into_iter().flatten();
        for part in targets.chain([panel]) {
            let uid = &part["datasource"]["uid"];
            ensure!(*uid == chosen.as_str(), "panel {} has the data source {uid}", panel["id"]);
        }
    }
    Ok(())
}

/// Checks that each panel has a type, a title and a place of its own in the grid.
fn check_panels(dashboard: &Value) -> Result<(), String> {
    let (mut ids, mut titles, mut taken) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for panel in panels(dashboard)? {
        let id = panel["id"].as_u64().filter(|id| *id > 0).ok_or(format!("no id in {panel}"))?;
        ensure!(ids.insert(id), "two panels have the id {id}");
        let (kind, title) = (text(panel, "type")?, text(panel, "title")?);
        ensure!(TYPES.contains(&kind), "panel {id} is of type {kind}");
        ensure!(titles.insert(title), "two panels have the title {title}");
        let place = ["x", "y", "w", "h"].map(|field| panel["gridPos"][field].as_u64());
        let [Some(x), Some(y), Some(w), Some(h)] = place else { return Err(format!("panel {id} has no place")) };
        ensure!(w > 0 && h > 0 && x + w <= COLUMNS, "panel {id} does not fit into {COLUMNS} columns");
        for cell in (y..y + h).flat_map(|row| (x..x + w).map(move |column| (row, column))) {
            ensure!(taken.insert(cell), "panel {id} overlaps another panel");
        }
        let names: Vec<_> = panel["targets"].as_array().into_iter().flatten().map(|target| &target["refId"]).collect();
        let unequal = names.iter().enumerate().all(|(place, name)| !names[..place].contains(name));
        ensure!(unequal, "two queries of panel {id} have the same name: {names:?}");
    }
    Ok(())
}

/// Checks that the exporter has each metric of the expressions, and that Prometheus can parse them.
fn check_expressions(dashboard: &Value) -> Result<(), String> {
    let expressions = expressions(dashboard)?;
    let variables = dashboard["templating"]["list"].as_array().into_iter().flatten();
    let variables = variables.filter_map(|variable| variable["definition"].as_str());
    page::check_known(expressions.iter().map(|(_, expression)| expression.as_str()).chain(variables))?;
    // A rule that records the result is a file that promtool can check.
    let mut rules = String::from("groups:\n  - name: dashboard\n    rules:\n");
    for (name, expression) in &expressions {
        rules.push_str(&format!("      - record: {name}\n        expr: {}\n", Value::from(expression.as_str())));
    }
    promtool("check", "dashboard.yaml", &[("dashboard.yaml", &rules)])
}

/// Makes all checks of a dashboard.
fn check(text: &str) -> Result<(), String> {
    let dashboard: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    check_fields(&dashboard)?;
    check_panels(&dashboard)?;
    check_expressions(&dashboard)
}

#[test]
fn grafana_can_import_the_dashboard_and_prometheus_can_answer_it() {
    check(&dashboard()).unwrap();
}

/// What the page says that the dashboard shows, as the metrics of which at least one is in a panel.
#[test]
fn the_dashboard_shows_what_the_page_says() {
    let dashboard: Value = serde_json::from_str(&dashboard()).expect("JSON");
    let shown: String = expressions(&dashboard).unwrap().into_iter().map(|(_, expression)| expression + "\n").collect();
    for metric in [
        "snowflake_pg_ids_issued_total",
        "snowflake_pg_lead_seconds",
        "snowflake_pg_throttled_seconds_total",
        "snowflake_pg_grant_left_ratio",
        "snowflake_pg_failed_heartbeats",
        "snowflake_pg_refused",
        "snowflake_pg_server_primary",
        "snowflake_pg_mark_lead_seconds",
        "snowflake_pg_years_left",
        "snowflake_pg_segments_empty",
        "snowflake_registry_worker_ids_free",
    ] {
        assert!(shown.contains(metric), "no panel shows {metric}");
    }
    let table = panels(&dashboard).unwrap().iter().find(|panel| panel["type"] == "table").expect("a table");
    let names = table["transformations"][0]["options"]["renameByName"].as_object().expect("names of columns");
    assert!(names.contains_key("worker_id"), "{names:?}");
}

#[test]
fn a_dashboard_that_cannot_be_imported_or_answered_is_caught() {
    let dashboard = dashboard();
    let source = r#""datasource": {"type": "prometheus", "uid": "${datasource}"},"#;
    for (from, to, outcome) in [
        (r#""id": null"#, r#""id": 7"#, "belongs to one installation"),
        (r#""uid": "snowflake-pg""#, r#""uid": """#, "no uid"),
        (r#""schemaVersion": "#, r#""schemaVersion": -"#, "the version of the schema"),
        (r#""query": "prometheus""#, r#""query": "loki""#, "the data source is of type"),
        (format!("{source}\n      \"fieldConfig\"").as_str(), r#""fieldConfig""#, "panel 1 has the data source null"),
        (r#""id": 2,"#, r#""id": 1,"#, "two panels have the id 1"),
        (r#""type": "stat","#, r#""type": "singlestat","#, "panel 1 is of type"),
        (r#""w": 4, "x": 4,"#, r#""w": 4, "x": 3,"#, "panel 2 overlaps another panel"),
        (r#""w": 4, "x": 20,"#, r#""w": 5, "x": 20,"#, "panel 6 does not fit into 24 columns"),
        (r#""refId": "B""#, r#""refId": "A""#, "have the same name"),
        ("snowflake_pg_ids_issued_total", "snowflake_pg_ids_total", "no metric snowflake_pg_ids_total"),
        ("label_values(snowflake_pg_", "label_values(snowflake_", "no metric snowflake_server_primary"),
        ("[$__rate_interval])", "[$__rate_interval]", "could not parse expression"),
    ] {
        let spoilt = dashboard.replacen(from, to, 1);
        assert_ne!(spoilt, dashboard, "{from}");
        assert_caught(check(&spoilt), outcome);
    }
}
