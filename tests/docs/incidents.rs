//! docs/bad-day.md lists every incident: each error of a server that issues no IDs or no numbers, each log message that asks for an
//! action, and each alert. The messages are read from the sources. The links are checked by `links.rs`.

use std::fs;
use std::path::Path;

use cluster::{assert_caught, ensure, files, page, repository, texts_of};

/// The sections of the page with the tables.
const SECTIONS: [&str; 6] = [
    "No IDs",
    "IDs with wrong times",
    "Duplicate IDs",
    "The registry",
    "Numbers of segments and series",
    "Setting the mark",
];

/// The folder with all errors and log messages, one file for each feature.
const MESSAGES: &str = "src/message";

/// The features with the errors of sessions without an ID or a number. In a report, the message follows the SQLSTATE.
const ERRORS: [&str; 3] = ["src/message/fleet.rs", "src/message/segment.rs", "src/message/registry.rs"];

/// The folders of the server itself, which raises or logs errors of other features, too.
const SERVER: [&str; 6] = ["src/config", "src/fleet", "src/generator", "src/segments", "src/server", "src/workers"];

/// The calls before the text of a log message at level WARNING.
pub const WARNINGS: [&str; 3] = ["warn_of(", "warn(", "let message = "];

/// The call before the text of a log message at level LOG with a hint.
const HINTS: [&str; 1] = ["log_with_hint("];

/// Messages that are no incident.
const OTHERS: [(&str, &str); 9] = [
    ("invalid tag length", "a mistake of the caller"),
    ("segment \"..\" belongs to a series", "a mistake of the caller"),
    ("the request to the registry was interrupted", "never reported"),
    ("the registry began a new life during the request", "the server sends another request at once"),
    ("snowflake_pg: ..", "the beginning of all messages"),
    ("", "the beginning of a message that is logged as it is"),
    ("the quarantine of fleet .. was ended by \"..\"", "an administrator has ended it"),
    ("worker ID .. of datacenter .. was reserved by \"..\"", "an administrator has reserved it"),
    ("worker ID .. of datacenter .. was released by \"..\"", "an administrator has released it"),
];

/// Returns the Rust sources below a folder, without comments.
fn sources(folder: &str) -> Vec<String> {
    files(&[folder], ".rs").iter().map(|path| source(&repository().join(path))).collect()
}

/// Returns a source without comments, with each string on one line and its quotation marks as another character.
pub fn source(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let code: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let mut joined = String::new();
    for line in code.join("\n").replace("\\\"", "\u{1}").split("\\\n") {
        joined += if joined.is_empty() { line } else { line.trim_start() };
    }
    joined
}

/// Returns the strings in a piece of code, as messages: what varies is two points.
fn literals(code: &str) -> Vec<String> {
    let message = |literal: &str| {
        let (mut text, mut rest) = (String::new(), literal);
        while let Some((before, after)) = rest.split_once('{') {
            text += &format!("{before}..");
            rest = after.split_once('}').map_or("", |(_, after)| after);
        }
        (text + rest).replace('\u{1}', "\"")
    };
    code.split('"').skip(1).step_by(2).map(message).collect()
}

/// Returns the messages of all reports in a piece of code: the strings of the expression after an SQLSTATE. Details and hints are
/// sentences, and begin with a capital letter. Notices are not included.
pub fn reported(code: &str) -> Vec<String> {
    let is_error = |name: &str| !name.contains([' ', ',']) && name != "SUCCESSFUL_COMPLETION";
    let mut found = Vec::new();
    for rest in code.split("ERRCODE_").skip(1) {
        let Some((_, rest)) = rest.split_once(",\n").filter(|(name, _)| is_error(name)) else { continue };
        // A message that depends on a condition consists of several strings.
        let ends: &[&str] = if rest.trim_start().starts_with("match ") { &["},\n"] } else { &["),\n", "\",\n"] };
        let end = ends.iter().filter_map(|end| Some(rest.find(end)? + end.len())).min().unwrap_or_default();
        found.extend(literals(&rest[..end]).into_iter().filter(|text| !text.starts_with(char::is_uppercase)));
    }
    found
}

/// Returns the messages of the errors that the server itself raises or logs. In the file of a feature, each error is an arm of a match.
fn refusals() -> Vec<String> {
    let raising: String = SERVER.into_iter().flat_map(sources).collect();
    let is_name = |c: char| c.is_alphanumeric() || c == ':';
    let mut found = Vec::new();
    for source in sources(MESSAGES) {
        for arms in source.split("        match self {\n").skip(1) {
            let arms = arms.split("\n        }\n").next().unwrap_or_default();
            let mut raised = false;
            let lines = arms.lines().filter(|line| {
                if let Some(arm) = line.strip_prefix("            ").filter(|arm| arm.starts_with(char::is_uppercase)) {
                    raised = raising.contains(arm.split(|c: char| !is_name(c)).next().unwrap_or_default());
                }
                raised
            });
            found.extend(reported(&lines.map(|line| format!("{line}\n")).collect::<String>()));
        }
    }
    assert!(found.len() > 12, "{found:?}");
    found
}

/// Returns the messages about a high-water mark that is missing or not durable. Some of them are not directly after an SQLSTATE.
fn marks() -> Vec<String> {
    let mark = source(&repository().join(MESSAGES).join("mark.rs"));
    let errors =
        mark.split("impl MarkProblem").nth(1).and_then(|rest| rest.split("pub enum").next()).expect("the errors");
    literals(errors).into_iter().filter(|text| text.starts_with(char::is_lowercase)).collect()
}

/// Returns the messages that the server logs with these calls.
pub fn logged(calls: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for source in SERVER.into_iter().chain([MESSAGES]).flat_map(sources) {
        for call in calls {
            for rest in source.split(call).skip(1) {
                let rest = rest.trim_start().trim_start_matches('&').trim_start_matches("format!(").trim_start();
                if rest.starts_with('"') {
                    found.extend(literals(rest).into_iter().next());
                }
            }
        }
    }
    found
}

/// Returns the messages that the server of the registry logs.
fn logged_by_the_registry() -> Vec<String> {
    let mut found = Vec::new();
    for (_, text) in texts_of(&["registry"], ".sql") {
        for level in ["RAISE LOG", "RAISE WARNING"] {
            let calls = text.split(level).skip(1).filter_map(|rest| rest.split('\'').nth(1));
            found.extend(calls.map(|message| message.replace("%s", "..").replace('%', "..")));
        }
    }
    found
}

fn alerts() -> Vec<String> {
    let rules = page("docs/monitoring/alerts.yml");
    rules.lines().filter_map(|line| Some(line.trim().strip_prefix("- alert: ")?.to_string())).collect()
}

/// Returns the cells of all rows of the tables in the sections.
fn rows(text: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for section in text.split("\n## ").skip(1) {
        if !SECTIONS.contains(&section.lines().next().unwrap_or_default()) {
            continue;
        }
        let lines = section.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| ---"));
        let rows = lines.map(|line| line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_string()).collect());
        // The first row is the head.
        found.extend(rows.skip(1));
    }
    found
}

/// Checks that a message is in one of the first cells: each part of it that does not vary, in this order.
pub fn check_listed(message: &str, cells: &[String]) -> Result<(), String> {
    let listed = |cell: &String| {
        cell.split('`').skip(1).step_by(2).any(|text| {
            let parts = message.split("..").map(|part| part.trim_end_matches(|c: char| !c.is_alphanumeric()).trim());
            let mut rest = Some(text);
            for part in parts.map(|part| part.trim_start_matches([',', ' '])).filter(|part| part.len() > 2) {
                rest = rest.and_then(|rest| Some(rest.split_once(part)?.1));
            }
            rest.is_some()
        })
    };
    ensure!(cells.iter().any(listed), "{message:?} is not listed");
    Ok(())
}

/// Checks that each incident is listed, and that each row says what to do.
fn check(text: &str, incidents: &[String]) -> Result<(), String> {
    let rows = rows(text);
    ensure!(rows.len() > 50, "the page has {} rows", rows.len());
    for row in &rows {
        ensure!(row.iter().all(|cell| !cell.is_empty()) && row.len() > 1, "an empty cell in {row:?}");
    }
    let first: Vec<String> = rows.iter().map(|row| row[0].clone()).collect();
    let missing: Vec<String> = incidents.iter().filter_map(|incident| check_listed(incident, &first).err()).collect();
    ensure!(missing.is_empty(), "{}", missing.join("\n"));
    Ok(())
}

/// Returns all incidents of the sources, except those that are not.
fn incidents() -> Vec<String> {
    let errors = ERRORS.iter().flat_map(|path| reported(&source(&repository().join(path))));
    let mut all: Vec<String> = errors
        .chain(refusals())
        .chain(marks())
        .chain(logged(&WARNINGS))
        .chain(logged(&HINTS))
        .chain(logged_by_the_registry())
        .collect();
    all.push("replicated row has the worker ID of this server".into());
    all.sort();
    all.dedup();
    for (other, why) in OTHERS {
        let before = all.len();
        all.retain(|message| message != other);
        assert!(all.len() < before, "{other:?} ({why}) is no message of the sources");
    }
    all
}

#[test]
fn the_page_lists_each_error_log_message_and_alert() {
    let (text, incidents, alerts) = (page("docs/bad-day.md"), incidents(), alerts());
    assert!(incidents.len() > 70 && alerts.len() > 20, "{incidents:#?}");
    check(&text, &[incidents, alerts].concat()).unwrap_or_else(|reason| panic!("docs/bad-day.md: {reason}"));
}

#[test]
fn an_incident_that_is_not_listed_is_caught() {
    let (text, incidents) = (page("docs/bad-day.md"), incidents());
    for (from, to) in [
        ("`a copy of this server uses worker ID ..`", "`a copy uses worker ID ..`"),
        ("`the high-water mark is more than a day ahead of the clock`", "`the mark is ahead`"),
        ("`the high-water mark was set back`", "`the mark was set back`"),
        ("`the clock was set forward by .. s, but IDs do not follow it`", "`the clock was set forward by .. s`"),
        ("`all worker IDs of the fleet are in use`", "`all worker IDs are in use`"),
        ("segment \"..\" is locked in the registry", "segment is locked in the registry"),
        ("`life .. of fleet .. begins: ..`", "`life .. begins: ..`"),
        ("`cannot lock the witness: ..`", "`no lock on the witness: ..`"),
    ] {
        let other = text.replacen(from, to, 1);
        assert!(other != text, "{from}");
        assert_caught(check(&other, &incidents), "is not listed");
    }
    assert_caught(check(&text, &["SnowflakeOther".into()]), "\"SnowflakeOther\" is not listed");
}
