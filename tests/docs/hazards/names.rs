//! docs/hazards.md has a row for each function, view, type and setting that docs/functions.md and docs/settings.md name.

use std::collections::BTreeSet;

use cluster::{assert_caught, ensure, page};

use super::{PAGE, rows};

/// The section whose first column names functions, views, types and settings.
const SECTION: &str = "Functions and settings";

/// The pages that list the functions, views, types and settings.
const LISTING: [&str; 2] = ["docs/functions.md", "docs/settings.md"];

/// Returns the names in a text: `snowflake_..` for a function, a view or a type, and `snowflake_pg..` for a setting.
fn names(text: &str) -> BTreeSet<String> {
    // A path, a link, or the name of a file or an image is one word, so no part of it is taken for a name.
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && !"_.-/#".contains(c));
    let name = |word: &str| {
        let word = word.trim_end_matches(['.', '-', '/']);
        let plain = word.starts_with("snowflake_") && !word.contains(['-', '/']) && word != "snowflake_pg";
        // The word may name a column of a view, such as `snowflake_status.lead`.
        let end = if word.starts_with("snowflake_pg.") { word.len() } else { word.find('.').unwrap_or(word.len()) };
        plain.then(|| word[..end].to_string())
    };
    words.filter_map(name).collect()
}

/// Checks that each row names something that the pages list, and that everything they list has a row.
fn check_names(hazards: &str, listing: &str) -> Result<(), String> {
    let listed = names(listing);
    ensure!(listed.len() > 30, "the pages list only {listed:?}");
    let mut found = BTreeSet::new();
    for row in rows(hazards)?.iter().filter(|row| row.section == SECTION) {
        let named: BTreeSet<String> = row.claim.split('`').skip(1).step_by(2).flat_map(names).collect();
        ensure!(!named.is_empty(), "no function or setting is named by {:?}", row.claim);
        if let Some(unknown) = named.iter().find(|name| !listed.contains(*name)) {
            return Err(format!("no page of {LISTING:?} names {unknown}"));
        }
        found.extend(named);
    }
    let missing: Vec<&String> = listed.difference(&found).collect();
    ensure!(missing.is_empty(), "no row of {PAGE} names {missing:?}");
    Ok(())
}

/// Returns the text of both pages.
fn listing() -> String {
    LISTING.map(page).concat()
}

#[test]
fn every_function_and_setting_has_a_row() {
    check_names(&page(PAGE), &listing()).unwrap();
}

#[test]
fn a_function_or_setting_without_a_row_is_caught() {
    let (hazards, listing) = (page(PAGE), listing());
    let with = |text: &str| format!("{listing}\n{text}\n");
    let others = "`snowflake_pg`, [a](#snowflake_pgprime), /etc/snowflake_pg.conf, snowflake_pg--0.2.0.sql, snowflake_status.lead.";
    check_names(&hazards, &with(others)).unwrap();
    for (text, reason) in [
        ("| `snowflake_prime()` | bigint |", "no row of docs/hazards.md names [\"snowflake_prime\"]"),
        ("## `snowflake_pg.prime`", "no row of docs/hazards.md names [\"snowflake_pg.prime\"]"),
        ("SELECT snowflake_prime(id) FROM orders;", "names [\"snowflake_prime\"]"),
    ] {
        assert_caught(check_names(&hazards, &with(text)), reason);
    }
    let without = listing.replace("snowflake_describe", "snowflake_explain");
    assert_caught(check_names(&hazards, &without), "names snowflake_describe");
    let nameless = hazards.replacen("| `snowflake_version` |", "| the version |", 1);
    assert_caught(check_names(&nameless, &listing), "no function or setting is named by \"the version\"");
    assert_caught(check_names(&hazards, "`snowflake_nextval()`"), "the pages list only");
}
