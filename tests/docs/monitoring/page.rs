//! The parts of docs/monitoring.md, and the files that it describes.

use std::path::Path;

use cluster::{block_with, blocks};

/// Returns the text of the page.
fn text() -> String {
    cluster::page("docs/monitoring.md")
}

/// Returns the exporter's file.
pub fn queries() -> String {
    cluster::page("docs/monitoring/queries.yml")
}

/// Returns the file of the exporter of the registry.
pub fn registry_queries() -> String {
    cluster::page("docs/monitoring/registry_queries.yml")
}

/// Returns Prometheus's file.
pub fn rules() -> String {
    cluster::page("docs/monitoring/alerts.yml")
}

/// Returns the text that follows a word at the beginning of the lines of the rules.
pub fn after<'a>(rules: &'a str, word: &str) -> Vec<&'a str> {
    rules.lines().filter_map(|line| line.trim().strip_prefix(word)).collect()
}

/// Returns the commands that copy the files.
pub fn commands() -> String {
    blocks(&text(), "sh monitoring").concat()
}

/// Returns the names of the alerts in the table of the page.
pub fn described() -> Vec<String> {
    let text = text();
    let section = text.split("\n## Alerts\n").nth(1).expect("a section");
    first_cells(section)
}

/// Returns the statement that creates the exporter's role.
pub fn role() -> String {
    block_with(blocks(&text(), "sql"), "CREATE ROLE")
}

/// Returns the exporter's connection string, with the socket and the database of a server of the tests.
pub fn connection(socket: &Path) -> String {
    let settings = block_with(blocks(&text(), "conf"), "DATA_SOURCE_NAME");
    let string = settings.lines().find_map(|line| line.strip_prefix("DATA_SOURCE_NAME='")?.strip_suffix('\''));
    let string = string.expect("a connection string");
    let place = "host=/run/postgresql dbname=shop";
    assert!(string.contains(place), "{string}");
    string.replace(place, &format!("host='{}' dbname=postgres", socket.display()))
}

/// Returns the name and the usage of each metric in the exporter's file, without labels.
pub fn metrics(queries: &str) -> Vec<(String, String)> {
    let (mut namespace, mut found) = ("", Vec::new());
    for line in queries.lines() {
        if let Some(name) = line.strip_suffix(':').filter(|name| !name.starts_with(' ')) {
            namespace = name;
        } else if let Some((name, rest)) = line.strip_prefix("    - ").and_then(|rest| rest.split_once(": {usage: ")) {
            let usage = rest.split(',').next().expect("a word").to_string();
            found.push((format!("{namespace}_{name}"), usage));
        }
    }
    found.retain(|(_, usage)| usage != "LABEL");
    assert!(found.len() > 4, "{found:?}");
    found
}

/// Checks that the exporters have each metric of these expressions.
pub fn check_known<'a>(expressions: impl Iterator<Item = &'a str>) -> Result<(), String> {
    let known = [metrics(&queries()), metrics(&registry_queries())].concat();
    let words = expressions.flat_map(|expression| expression.split(|c: char| !c.is_alphanumeric() && c != '_'));
    let mut used = words.filter(|word| word.starts_with("snowflake_"));
    let unknown = used.find(|word| !known.iter().any(|(name, _)| name == word));
    unknown.map_or(Ok(()), |name| Err(format!("the exporter has no metric {name}")))
}

/// Returns the sections about the views: status, backends and segments.
pub fn views() -> [String; 3] {
    let text = text();
    let section = text.split("## The views").nth(1).and_then(|rest| rest.split("\n## ").next()).expect("a section");
    let (status, rest) = section.split_once("`snowflake_stat_backends` has").expect("a second view");
    let (backends, segments) = rest.split_once("`snowflake_segments` has").expect("a third view");
    [status, backends, segments].map(String::from)
}

/// Returns the texts in backquotes in the first cells of a table's rows.
pub fn first_cells(section: &str) -> Vec<String> {
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    let cells = rows.map(|row| format!("`{}", row.split(" |").next().expect("a cell")));
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2).map(String::from).collect::<Vec<_>>()).collect()
}
