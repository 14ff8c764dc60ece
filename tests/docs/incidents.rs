//! docs/bad-day.md lists every incident: each error of a server that issues no IDs or no numbers, each log message that asks for an
//! action, and each alert. The messages are read from the sources. The links are checked by `links.rs`.

use std::collections::BTreeSet;
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

/// The files with the errors of sessions without an ID or a number. In a report, the message follows the SQLSTATE.
const ERRORS: [&str; 3] = ["src/message/fleet.rs", "src/message/segment.rs", "src/message/trouble.rs"];

/// The folders with the errors and log messages of the server itself.
const SERVER: [&str; 5] = ["src/fleet", "src/generator", "src/segments", "src/server", "src/workers"];

/// The calls before the text of a log message at level WARNING, or at level LOG with a hint.
const LOGGED: [&str; 5] = ["warn_of(", "warn(", "log_with_hint(", "warn_of_error(error, ", "let message = "];

/// Messages that are no incident.
const OTHERS: [(&str, &str); 8] = [
    ("invalid length of a tag", "a mistake of the caller"),
    ("segment \"..\" belongs to a series", "a mistake of the caller"),
    ("the request to the registry was interrupted", "never reported"),
    ("the registry has begun a new life during the request", "the server sends another request at once"),
    ("snowflake_pg: ..", "the beginning of all messages"),
    ("the quarantine of fleet .. was ended by \"..\"", "an administrator has ended it"),
    ("worker ID .. of datacenter .. is reserved by \"..\"", "an administrator has reserved it"),
    ("worker ID .. of datacenter .. is released by \"..\"", "an administrator has released it"),
];

/// Returns the Rust sources below a folder, without comments.
fn sources(folder: &str) -> Vec<String> {
    files(&[folder], ".rs").iter().map(|path| source(&repository().join(path))).collect()
}

/// Returns a source without comments, with each string on one line and its quotation marks as another character.
fn source(path: &Path) -> String {
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

/// Returns the messages of all reports in a piece of code: the strings of the expression after an SQLSTATE.
fn reported(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for rest in code.split("ERRCODE_").skip(1) {
        let Some((_, rest)) = rest.split_once(",\n").filter(|(name, _)| !name.contains([' ', ','])) else { continue };
        // A message that depends on a condition consists of several strings.
        let plain = if rest.trim_start().starts_with("match ") { ".into(),\n" } else { "\",\n" };
        let ends = [".into(),\n", "),\n", plain].map(|end| rest.find(end).map(|at| at + end.len()));
        let end = ends.into_iter().flatten().min().unwrap_or_default();
        found.extend(literals(&rest[..end]));
    }
    found
}

/// Returns the messages of the errors in `wording.rs` that the generator and the configuration raise or log.
fn refusals() -> Vec<String> {
    let raising: String = SERVER.into_iter().chain(["src/config"]).flat_map(sources).collect();
    let names = raising.split("Error::").skip(1);
    let variants: BTreeSet<&str> = names
        .filter_map(|rest| rest.split(|c: char| !c.is_alphanumeric()).next())
        .filter(|name| !name.is_empty())
        .collect();
    assert!(variants.len() > 12, "{variants:?}");
    let wording = source(&repository().join("src/message/wording.rs"));
    let arms: Vec<&str> = wording.split("            Error::").skip(1).collect();
    let is_raised =
        |arm: &&&str| arm.split(|c: char| !c.is_alphanumeric()).next().is_some_and(|name| variants.contains(name));
    arms.iter().filter(is_raised).flat_map(|arm| reported(arm)).collect()
}

/// Returns the messages about a high-water mark that is missing or not durable, which are in one function each.
fn marks() -> Vec<String> {
    let reasons = source(&repository().join("src/message/reasons.rs"));
    let function = |name: &str| {
        let begins = reasons.split(&format!("pub fn {name}(")).nth(1).expect("a function");
        begins.split("\n}\n").next().unwrap_or_default().to_string()
    };
    let (missing, waits) = (function("mark_missing"), function("mark_waits"));
    let all = [literals(&missing), literals(&waits)].concat();
    // Details and hints are sentences, and begin with a capital letter.
    all.into_iter().filter(|text| text.starts_with(|c: char| c.is_lowercase())).collect()
}

/// Returns the messages that the server logs.
fn logged() -> Vec<String> {
    let mut found = Vec::new();
    for source in SERVER.into_iter().flat_map(sources) {
        for call in LOGGED {
            for rest in source.split(call).skip(1) {
                let rest = rest.trim_start().trim_start_matches("format!(").trim_start();
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
fn check_listed(message: &str, cells: &[String]) -> Result<(), String> {
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
    let mut all: Vec<String> =
        errors.chain(refusals()).chain(marks()).chain(logged()).chain(logged_by_the_registry()).collect();
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
