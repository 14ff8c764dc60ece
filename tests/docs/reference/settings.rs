//! docs/settings.md and `pg_settings`: names, types, defaults, ranges and units, when a change takes effect, and the examples.

use cluster::{Answer, Cluster, assert_caught, blocks, ensure, page};

use super::{check_changelog, check_names};

/// The path of the page.
const PAGE: &str = "docs/settings.md";

/// The end of a range that depends on the layout.
const BY_LAYOUT: &str = " in the default layout";

/// A row of `pg_settings`, in the words of the page.
#[derive(Debug, PartialEq)]
struct SettingRow {
    name: String,
    kind: String,
    default: String,
    range: String,
    unit: String,
    changes: String,
}

/// Returns the settings as the server has them. A number that must fit into a field of the layout has the range of that field.
fn known(name: &str) -> Vec<SettingRow> {
    let server = Cluster::builder(name).start();
    let query = format!(
        "SELECT s.name, s.vartype, coalesce(boot_val, ''),
                CASE WHEN s.vartype = 'enum' THEN array_to_string(enumvals, ', ')
                     WHEN largest IS NOT NULL THEN concat_ws(' to ', nullif(min_val, largest::text), largest) || '{BY_LAYOUT}'
                     ELSE coalesce(min_val || ' to ' || max_val, '') END,
                coalesce(unit, ''), CASE context WHEN 'postmaster' THEN 'restart' WHEN 'sighup' THEN 'reload'
                                        WHEN 'superuser' THEN 'SET' WHEN 'user' THEN 'SET' ELSE context END
         FROM pg_settings AS s, snowflake_decode(snowflake_max_id('2080-07-10 17:30:30.208Z')) AS d,
              LATERAL (SELECT CASE s.name WHEN 'snowflake_pg.worker_id' THEN worker_id
                                          WHEN 'snowflake_pg.datacenter_id' THEN datacenter_id END AS largest) AS l
         WHERE s.name LIKE 'snowflake_pg.%'"
    );
    let rows = server.session().query(&query, &[]).expect("settings");
    let settings = rows.into_iter().map(|row| {
        let text = |column: usize| row.get::<_, String>(column);
        SettingRow { name: text(0), kind: text(1), default: text(2), range: text(3), unit: text(4), changes: text(5) }
    });
    settings.collect()
}

/// Returns the rows of the page's table.
fn shown(page: &str) -> Vec<SettingRow> {
    let rows = page.lines().filter(|line| line.starts_with("| [`snowflake_pg."));
    rows.map(|row| {
        let cells: Vec<String> = row.split('|').map(|cell| cell.trim().replace('`', "")).collect();
        let default = cells[3].split(" (").next().expect("a default");
        SettingRow {
            name: cells[1].trim_start_matches('[').split(']').next().expect("a name").into(),
            kind: cells[2].clone(),
            default: if default == "empty" { String::new() } else { default.into() },
            range: cells[4].clone(),
            unit: cells[5].clone(),
            changes: cells[6].clone(),
        }
    })
    .collect()
}

fn check(page: &str, known: &[SettingRow]) -> Result<(), String> {
    let names: Vec<&str> = known.iter().map(|setting| setting.name.as_str()).collect();
    let shown = shown(page);
    let lacking: Vec<&&str> = names.iter().filter(|name| shown.iter().all(|setting| setting.name != **name)).collect();
    ensure!(!names.is_empty() && lacking.is_empty(), "the table lacks {lacking:?}");
    ensure!(shown.len() == known.len(), "the table has two rows of a setting");
    let output = |name: &str| page.lines().any(|line| line.starts_with(&format!(" {name} ")));
    let lacking: Vec<&&str> = names.iter().filter(|name| !output(name)).collect();
    ensure!(lacking.is_empty(), "the output of the query lacks {lacking:?}");
    for (name, text) in check_names(page, &names)? {
        let setting = known.iter().find(|setting| setting.name == name).expect("a name that was checked");
        let row = shown.iter().find(|setting| setting.name == name);
        ensure!(row == Some(setting), "{name} is {setting:?}, not {row:?}");
        let example = blocks(text, "conf").concat();
        ensure!(example.contains(&format!("{name} = ")), "{name} has no example");
    }
    Ok(())
}

#[test]
fn every_setting_is_described_as_it_is() {
    let known = known("reference_settings");
    let names: Vec<&str> = known.iter().map(|setting| setting.name.as_str()).collect();
    let described = check(&page(PAGE), &known).map_err(|reason| format!("{PAGE}: {reason}"));
    let named = check_changelog(&page("CHANGELOG.md"), &names);
    let wrong: Vec<String> = [described, named].into_iter().filter_map(Result::err).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_setting_that_is_described_wrongly_is_caught() {
    let (page, known) = (page(PAGE), known("reference_settings_wrong"));
    for (was, is, reason) in [
        ("\n### snowflake_pg.epoch\n", "\n", "snowflake_pg.epoch has 0 sections"),
        ("\n### snowflake_pg.epoch", "\n### era\n\n### snowflake_pg.epoch", "era does not exist"),
        ("| [`snowflake_pg.epoch`]", "| [snowflake_pg.epoch]", "the table lacks [\"snowflake_pg.epoch\"]"),
        ("\n snowflake_pg.epoch  ", "\n epoch  ", "the output of the query lacks [\"snowflake_pg.epoch\"]"),
        ("`-1` (not set)", "`0`", "snowflake_pg.worker_id is"),
        ("-1 to 1023", "-1 to 1024", "snowflake_pg.worker_id is"),
        ("| 0 in the default", "| 0 to 31 in the default", "snowflake_pg.datacenter_id is"),
        ("`41:10:12` |", "`41:5:5:12` |", "snowflake_pg.layout is"),
        ("2 to 10000", "1 to 10000", "snowflake_pg.max_ahead is"),
        ("31536000 | s |", "31536000 | min |", "snowflake_pg.max_clock_jump is"),
        ("`zero`, `random` |", "`zero` |", "snowflake_pg.sequence_start is"),
        ("| empty | | | restart |", "| empty | | | reload |", "snowflake_pg.epoch is"),
        ("snowflake_pg.max_ahead = ", "max_ahead = ", "snowflake_pg.max_ahead has no example"),
    ] {
        assert!(page.contains(was), "{was}");
        assert_caught(check(&page.replacen(was, is, 1), &known), reason);
    }
    let changelog = cluster::page("CHANGELOG.md").replace("`sequence_start`", "`start`");
    assert_caught(check_changelog(&changelog, &["snowflake_pg.sequence_start"]), "does not name");
}

const REGISTRY: &str = "snowflake_pg.registry";
const WORKER: &str = "snowflake_pg.worker_id";

/// Starts servers with the examples as they are written. Examples that do not set the same settings share a server.
#[test]
fn every_example_is_accepted() {
    let examples = blocks(&page(PAGE), "conf");
    let mut files: Vec<Vec<(&str, &str)>> = Vec::new();
    for example in &examples {
        let lines: Vec<(&str, &str)> = cluster::settings(example).collect();
        // No server can have both a worker ID and a registry.
        let kind = |name: &str| if name == REGISTRY { WORKER.to_string() } else { name.to_string() };
        let has_none = |file: &&mut Vec<(&str, &str)>| {
            file.iter().all(|(name, _)| lines.iter().all(|(new, _)| kind(new) != kind(name)))
        };
        match files.iter_mut().find(has_none) {
            Some(file) => file.extend(lines),
            None => files.push(lines),
        }
    }
    assert!(files.len() <= 4, "{files:?}");
    for (number, file) in files.iter().enumerate() {
        let mut builder = Cluster::builder(&format!("reference_examples_{number}"));
        if file.iter().any(|(name, _)| *name == REGISTRY) {
            builder = builder.unset(WORKER);
        }
        for (name, value) in file {
            builder = builder.set(name, value);
        }
        let server = builder.start();
        for (name, value) in file {
            let shown: String = server.session().one(&format!("SELECT current_setting('{name}')"));
            assert_eq!(shown, *value, "{name}");
        }
    }
}
