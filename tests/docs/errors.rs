//! docs/errors.md shows the messages exactly as the server reports them, and its list has a link to each message.

use std::collections::BTreeSet;

use cluster::{Answer, Cluster, assert_caught, ensure, files, page, repository, texts_of};

use crate::incidents::{WARNINGS, check_listed, logged, reported, source};
use crate::links::slug;

/// Messages that are not in the extension's source: those of PostgreSQL, and those that contain a name or a number.
const ELSEWHERE: &[&str] = &[
    "invalid value for parameter \"snowflake_pg....\"",
    "timestamp out of range",
    "invalid input syntax for type bigint",
    "integer out of range",
    "type \"snowflake_text\" already exists",
    "parameter \"snowflake_pg.layout\" cannot be changed without restarting the server",
    "function snowflake_encode(...) is not unique",
    "function ... does not exist",
    "generation expression is not immutable",
    "functions in index expression must be marked IMMUTABLE",
    "could not determine which collation to use for string comparison",
    "value for domain snowflake_text violates check constraint \"snowflake_text_digits\"",
    "partition \"...\" would overlap partition \"...\"",
    "updated partition constraint for default partition \"...\" would be violated by some row",
    "relation \"...\" already exists",
    "trigger \"...\" for relation \"...\" already exists",
    "no partition of relation \"...\" found for row",
    "query would be affected by row-level security policy for table \"...\"",
    "permission denied for function snowflake_segment_nextval",
    "could not find function \"snowflake_..._wrapper\" in file ...",
    "cannot store the high-water mark while \"max_replication_slots\" is 0",
    "permission denied for table ...",
    "column \"...\" contains IDs from more than 65536 servers",
    "column ... has more than 100000 gaps",
];

/// Returns the text of the section whose heading begins with this text.
fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let text = page.split(&format!("### {heading}")).nth(1).and_then(|rest| rest.split("\n### ").next());
    text.expect("a section")
}

fn headings(page: &str) -> impl Iterator<Item = &str> {
    page.lines().filter_map(|line| line.strip_prefix("### "))
}

/// Returns the messages in a heading, each with its SQLSTATEs. A heading is `"message" (SQLSTATE)`, or several of these separated by
/// commas. A warning in the log has no SQLSTATE.
fn titles(heading: &str) -> impl Iterator<Item = (&str, Vec<&str>)> {
    heading.split("), ").filter_map(|part| {
        let (quoted, codes) = part.rsplit_once(" (")?;
        let codes = codes.trim_end_matches(')').split(", ").filter(|code| code.len() == 5);
        Some((quoted.strip_prefix('"')?.strip_suffix('"')?, codes.collect()))
    })
}

/// Checks that each heading contains a message of the server.
fn check_messages(page: &str) -> Result<(), String> {
    let source: String = texts_of(&["src", "sql", "portable"], "").into_iter().map(|(_, text)| text).collect();
    // The escapes and line breaks of Rust strings are removed from the source.
    let source = source.replace("\\\"", "\"").replace("\\\n", "").split_whitespace().collect::<Vec<_>>().join(" ");
    let messages: Vec<&str> = headings(page).flat_map(titles).map(|(message, _)| message).collect();
    ensure!(messages.len() > 50, "the page has {} messages", messages.len());
    for message in messages.into_iter().filter(|message| !ELSEWHERE.contains(message)) {
        // Only the parts that do not vary are compared. The log adds the extension's name, and in some messages the worker ID.
        let fixed = message.trim_start_matches("snowflake_pg: ").trim_end_matches("worker ID ...");
        for part in fixed.split("...").map(|part| part.trim_matches(['"', ' ', ','])) {
            ensure!(source.contains(part), "no message of the server has {part:?}, as in {message:?}");
        }
    }
    Ok(())
}

/// Checks that each error has a section: a heading that contains the longest text of its message between parts that vary. The name of a
/// setting varies, too.
fn check_sections(page: &str) -> Result<(), String> {
    for message in errors() {
        let found = headings(page).any(|heading| heading.contains(fixed(&message)));
        ensure!(found, "docs/errors.md has no section for {message:?}");
    }
    Ok(())
}

/// Returns the messages of all errors, except those of `registry.rs`, which are causes of a failed heartbeat.
fn errors() -> Vec<String> {
    let features = files(&["src/message"], ".rs").into_iter().filter(|path| !path.ends_with("registry.rs"));
    let errors: Vec<String> = features.flat_map(|path| reported(&source(&repository().join(path)))).collect();
    assert!(errors.len() > 100, "{} errors", errors.len());
    errors
}

#[test]
fn every_error_has_a_section() {
    let page = page("docs/errors.md");
    check_sections(&page).unwrap();
    let other = page.replace("is not an ID of layout", "is no ID");
    assert_caught(check_sections(&other), "no section for \".. is not an ID");
}

/// The longest text of a message between parts that vary.
fn fixed(message: &str) -> &str {
    let parts = message.split("..").flat_map(|text| text.split("snowflake_pg."));
    let parts = parts.map(|part| part.trim_matches([' ', '"', ':', ',']));
    parts.max_by_key(|part| part.len()).unwrap_or_default()
}

/// Checks that a test or the expected output of one contains each error.
fn check_tested(tests: &str, errors: &[String]) -> Result<(), String> {
    let untested: Vec<&String> = errors.iter().filter(|message| !tests.contains(fixed(message))).collect();
    ensure!(untested.is_empty(), "no file of tests/ contains {untested:#?}");
    Ok(())
}

#[test]
fn every_error_has_a_test() {
    let texts = texts_of(&["tests"], "").into_iter().filter(|(path, _)| !path.starts_with("tests/docs/errors.rs"));
    let tests: String = texts.map(|(_, text)| text.replace("\\\"", "\"")).collect();
    let errors = errors();
    check_tested(&tests, &errors).unwrap();
    assert_caught(check_tested(&tests.replace("is not a valid layout", ""), &errors), "is not a valid layout");
}

/// Checks that each warning in the log has a section, except warnings that begin with a part that varies.
fn check_warnings(page: &str) -> Result<(), String> {
    let headings: Vec<String> = headings(page).map(|heading| format!("`{heading}`")).collect();
    let mut warnings = logged(&WARNINGS);
    warnings.retain(|message| !["", "snowflake_pg: .."].contains(&&message[..]) && !message.starts_with(".."));
    ensure!(warnings.len() > 20, "{warnings:?}");
    for message in warnings {
        check_listed(&message, &headings).map_err(|_| format!("docs/errors.md has no section for {message:?}"))?;
    }
    Ok(())
}

#[test]
fn every_warning_has_a_section() {
    let page = page("docs/errors.md");
    check_warnings(&page).unwrap();
    for (was, is) in [("the witness file was removed", "the witness was removed"), ("was set back by", "is back by")] {
        assert_caught(check_warnings(&page.replace(was, is)), "no section for \"the ");
    }
}

/// Returns the causes of a failed heartbeat: those in the table of the page.
fn causes(page: &str) -> BTreeSet<String> {
    let lines = section(page, "\"snowflake_pg: heartbeat failed").lines();
    let rows = lines.filter(|line| line.starts_with("| ") && line.contains("| `"));
    rows.filter_map(|row| Some(row.split("| `").nth(1)?.split("` |").next()?.trim_end_matches(": ...").into()))
        .collect()
}

/// Returns the causes of a failed heartbeat in the source. In each report, the line with the SQLSTATE is followed by the message.
fn causes_in_source() -> BTreeSet<String> {
    let source = page("src/message/registry.rs").replace("\\\"", "\u{1}");
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let reports = lines.windows(2).filter(|pair| pair[0].starts_with("PgSqlErrorCode::ERRCODE_"));
    let messages = reports.filter_map(|pair| pair[1].split('"').nth(1));
    messages.map(|message| message.trim_end_matches(": {message}").replace('\u{1}', "\"")).collect()
}

/// Checks that the table contains each cause of a failed heartbeat, and no other. An interrupted request is not reported.
fn check_causes(page: &str) -> Result<(), String> {
    let mut source = causes_in_source();
    source.remove("the request to the registry was interrupted");
    let page = causes(page);
    ensure!(page == source, "the page has {:?} more, and lacks {:?}", &page - &source, &source - &page);
    Ok(())
}

#[test]
fn the_causes_of_a_failed_heartbeat_are_those_of_the_server() {
    let page = page("docs/errors.md");
    check_causes(&page).unwrap();
    let other = page.replace("| `cannot connect to the registry` |", "| `cannot connect` |");
    assert_caught(check_causes(&other), "lacks {\"cannot connect to");
    assert!(causes(&page).len() > 10);
}

/// Checks that each heading with a message is in the list, with each of its SQLSTATEs. `links.rs` checks that each link in the list leads
/// to a heading.
fn check_list(page: &str) -> Result<(), String> {
    for heading in headings(page).filter(|heading| titles(heading).count() > 0) {
        let link = format!("](#{}) |", slug(heading));
        let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| ") && line.ends_with(&link)).collect();
        ensure!(!rows.is_empty(), "docs/errors.md: {heading} is not in the list");
        let mut codes = titles(heading).flat_map(|(_, codes)| codes);
        let lacking = codes.find(|code| !rows.iter().any(|row| row.starts_with(&format!("| {code} |"))));
        ensure!(lacking.is_none(), "docs/errors.md: {heading} is in the list without {lacking:?}");
    }
    Ok(())
}

#[test]
fn the_messages_are_those_of_the_server() {
    let page = page("docs/errors.md");
    check_messages(&page).unwrap();
    assert_caught(check_messages(&page.replace("is not a valid layout", "is no layout")), "no message of the server");
}

#[test]
fn the_list_leads_to_every_message() {
    let page = page("docs/errors.md");
    check_list(&page).unwrap();
    assert_caught(check_list(&page.replace("### \"... is not an ID\"", "### \"... is no ID\"")), "is not in the list");
    let other = page.replace("| 22P05 | [`the registry cannot", "| 22P02 | [`the registry cannot");
    assert_caught(check_list(&other), "is in the list without Some(\"22P05\")");
}

/// Checks that each call in the first column of the table is refused because there is no such function, and that the call in the second
/// column works.
fn check_calls(page: &str) -> Result<(), String> {
    let rows = section(page, "\"function ... does not exist\"").lines().filter(|line| line.starts_with("| `"));
    let calls: Vec<Vec<&str>> =
        rows.map(|row| row.split("| ").map(|cell| cell.trim().trim_matches('`')).collect()).collect();
    ensure!(calls.len() >= 8, "the table has {} rows", calls.len());
    let server = Cluster::builder("errors_calls").start();
    let mut session = server.session();
    for row in calls {
        for (call, expected) in [(row[1], Some("42883")), (row[2], None)] {
            let code = session.code(&format!("SELECT {call}"));
            ensure!(code.as_deref() == expected, "{call} raises {code:?}");
        }
    }
    Ok(())
}

#[test]
fn the_calls_of_functions_that_do_not_exist_have_others_that_work() {
    let page = page("docs/errors.md");
    check_calls(&page).unwrap();
    let other = page.replace("| `snowflake_nextval()` |", "| `snowflake_nextval(1)` |");
    assert_caught(check_calls(&other), "raises Some(\"42883\")");
    assert_caught(check_calls(&page.replace("| `snowflake_nextval('", "| `quote_literal('")), "raises None");
}

/// The errors of PostgreSQL itself that have a section of their own, except that of a setting that cannot be changed without a restart,
/// which `tests/pg_regress/sql/default_settings.sql` shows.
#[test]
fn postgresql_raises_its_errors_in_the_cases_that_the_page_names() {
    let page = page("docs/errors.md");
    let server = Cluster::builder("errors_postgresql").start();
    let mut session = server.session();
    session.batch_execute("CREATE TABLE narrow (id integer DEFAULT snowflake_nextval())").expect("a table");
    let domain = "CREATE DOMAIN snowflake_text AS text; CREATE EXTENSION snowflake_pg";
    let without = |sql: &str| format!("DROP EXTENSION snowflake_pg CASCADE; {sql}");
    for (sql, code, heading) in [
        ("SELECT snowflake_decode('1ASD13XH1F800')", "22P02", "invalid input syntax for type bigint"),
        ("INSERT INTO narrow DEFAULT VALUES", "22003", "integer out of range"),
        (&without(domain), "42710", "type \"snowflake_text\" already exists"),
        (&without("SELECT snowflake_nextval()"), "42883", "function snowflake_nextval() does not exist"),
    ] {
        let (found, message) = session.refusal(sql);
        assert_eq!(found, code, "{sql}");
        assert!(message.starts_with(heading), "{message}");
    }
    for heading in ["invalid input syntax for type bigint\" (22P02)", "integer out of range\" (22003)"] {
        assert!(page.contains(&format!("### \"{heading}")), "{heading}");
    }
}
