//! The functions with SECURITY DEFINER that the pages and the scripts of the extensions create: only roles that somebody names can execute
//! them, and no object of the caller replaces what they name.

mod attack;
mod statements;

use std::collections::BTreeSet;
use std::fs;

use cluster::{Scratch, assert_caught, code_blocks, command, ensure, output, repository, texts_of};

use crate::definers::statements::{PageStatement, statements};

/// How many such functions the pages create at least. A check that finds fewer does not read the pages.
const AT_LEAST: usize = 6;

/// Returns the path and the text of each page.
fn pages() -> Vec<(String, String)> {
    texts_of(&[""], ".md").into_iter().map(|(path, text)| (path.display().to_string(), text)).collect()
}

/// Checks the functions of a page, and returns their names. Each must be revoked from PUBLIC in the transaction that creates it, because
/// every role can execute a new function.
fn check_page(path: &str, page: &str) -> Result<BTreeSet<String>, String> {
    let mut closed = BTreeSet::new();
    for block in code_blocks(page) {
        if block.language.split(' ').next() == Some("sql") {
            check(path, &statements(&block.text), &mut closed)?;
        } else {
            let defines = block.text.contains("SECURITY DEFINER");
            ensure!(!defines, "{path}: SECURITY DEFINER in a block of {}", block.language);
        }
    }
    Ok(closed)
}

/// Checks the functions of a script, and adds their names to those that are closed.
fn check(path: &str, script: &[PageStatement], closed: &mut BTreeSet<String>) -> Result<(), String> {
    for (at, statement) in script.iter().enumerate() {
        if let Some(name) = closed.iter().find(|name| statement.opens(name)) {
            return Err(format!("{path}: every role may execute {name}"));
        }
        if !statement.has("SECURITY DEFINER") {
            continue;
        }
        let Some(name) = statement.function() else {
            return Err(format!("{path}: SECURITY DEFINER outside of CREATE FUNCTION"));
        };
        ensure!(statement.has_safe_names(), "{path}: {name} finds objects by the caller's search_path");
        let later = script[at..].iter().take_while(|later| later.transaction == statement.transaction);
        let is_closed = later.clone().any(|later| later.closes(&name));
        ensure!(is_closed || closed.contains(&name), "{path}: {name} is not revoked from PUBLIC in its transaction");
        closed.insert(name);
    }
    Ok(())
}

/// Returns the scripts that create the objects of an extension, each as the one transaction in which it runs. The portable functions are
/// not among them: `tests/portable/rights.rs` looks for those in the catalog, because their script computes what it revokes.
fn scripts() -> Vec<(&'static str, Vec<PageStatement>)> {
    let scratch = Scratch::new("definers_registry");
    output(command(repository().join("scripts/registry")).arg(&scratch.0));
    let built = format!("snowflake_registry--{}.sql", env!("CARGO_PKG_VERSION"));
    let script = |folder: &'static str| {
        let text: String = match folder {
            // Its files are not in alphabetical order.
            "registry" => fs::read_to_string(scratch.0.join(&built)).expect("the script of the registry"),
            _ => texts_of(&[folder], ".sql").into_iter().map(|(_, text)| text + "\n").collect(),
        };
        let mut script = statements(&text);
        script.iter_mut().for_each(|statement| statement.transaction = 0);
        (folder, script)
    };
    ["sql", "registry"].map(script).into()
}

#[test]
fn every_security_definer_function_is_revoked_from_public() {
    let mut found = BTreeSet::new();
    for (path, page) in pages() {
        found.extend(check_page(&path, &page).unwrap());
    }
    assert!(found.len() >= AT_LEAST, "the pages create only {found:?}");
    for (folder, script) in scripts() {
        let mut closed = BTreeSet::new();
        check(folder, &script, &mut closed).unwrap();
        assert_eq!(closed.is_empty(), folder != "registry", "{folder}: {closed:?}");
    }
}

#[test]
fn a_page_without_the_revoke_is_caught() {
    let page =
        |body: &str| format!("# Page\n\n1. Run:\n\n   ```sql setup\n   {}\n   ```\n", body.replace('\n', "\n   "));
    let create = "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER\n    \
        SET search_path = pg_catalog, pg_temp AS $$ BEGIN; $$;";
    let revoke = "REVOKE EXECUTE ON FUNCTION g(bigint), f() FROM PUBLIC;";
    let good = format!("BEGIN; -- Both\n{create}\n{revoke}\nCOMMIT;");
    let check = |body: &str| check_page("page.md", &page(body)).map(drop);
    check(&good).unwrap();
    check(&format!("{good}\n{}", create.replace("CREATE", "CREATE OR REPLACE"))).unwrap();
    check(&good.replace("FUNCTION g(bigint), f()", "ALL FUNCTIONS IN SCHEMA public")).unwrap();
    let open = "page.md: f is not revoked from PUBLIC in its transaction";
    let names = "page.md: f finds objects by the caller's search_path";
    for (body, reason) in [
        (create.to_string(), open),
        (format!("{create}\n{revoke}"), open),
        (good.replace("f() FROM", "other() FROM"), open),
        (good.replace("FROM PUBLIC", "FROM shop_app"), open),
        (good.replace("REVOKE", "-- REVOKE"), open),
        (good.replace("pg_catalog, pg_temp", "pg_catalog"), names),
        (good.replace("pg_catalog, pg_temp", "public, pg_temp"), names),
        (good.replace("\n    SET search_path = pg_catalog, pg_temp", ""), names),
        (format!("{good}\nGRANT EXECUTE ON FUNCTION f() TO PUBLIC;"), "every role may execute f"),
        ("ALTER FUNCTION f() SECURITY DEFINER;".into(), "SECURITY DEFINER outside of CREATE FUNCTION"),
    ] {
        assert_caught(check(&body), reason);
    }
    assert_caught(check_page("page.md", &page(&good).replace("sql setup", "python")).map(drop), "in a block of python");
    // The pages themselves.
    for (path, page) in pages().into_iter().filter(|(path, page)| !check_page(path, page).unwrap().is_empty()) {
        let open = page.replace("REVOKE EXECUTE", "SELECT");
        assert_caught(check_page(&path, &open).map(drop), "is not revoked from PUBLIC");
    }
}
