//! The expressions of docs/portable.md for other programs decode IDs as the library does.

use cluster::{Answer, assert_caught, block_with, blocks, command, ensure, page, repository, typed};
use serde_json::{Value, json};

use crate::server::library;

/// The programs, each with the words after the fence of its block.
const PROGRAMS: [(&str, &str); 5] = [
    ("duckdb", "sql duckdb"),
    ("sqlite", "sql sqlite"),
    ("clickhouse", "sql clickhouse"),
    ("pandas", "python pandas"),
    ("polars", "python polars"),
];

/// The IDs of the vectors in the default layout, and random IDs, each with its milliseconds since 1970, worker ID and sequence.
const ROWS: &str = "
    SELECT jsonb_agg(jsonb_build_array(id, snowflake_describe(id) -> 'unix_ms', worker_id, sequence) ORDER BY id)::text
    FROM (
        SELECT DISTINCT id FROM (
            SELECT (vector ->> 'id')::bigint FROM jsonb_array_elements($1::text::jsonb -> 'ids') AS vector
            WHERE vector ->> 'layout' = '41:10:12' OR vector ->> 'layout' = 'twitter'
            UNION ALL
            SELECT hashint8extended(n, 7) & 9223372036854775807 FROM generate_series(1, 10000) AS n
        ) AS all_ids (id)
    ) AS ids, snowflake_decode(id)";

/// Compares the results of all programs with those of the library. `edit` changes the blocks.
fn check(test: &str, edit: impl Fn(String) -> String) -> Result<(), String> {
    let (_server, mut session) = library(test);
    let rows: String = session.query_one(ROWS, &[&crate::compare::vectors()]).expect("the IDs").get(0);
    let rows: Value = serde_json::from_str(&rows).expect("JSON");
    let expected = rows.as_array().expect("a list");
    ensure!(expected.len() > 10_020, "{} IDs", expected.len());
    assert!(session.one::<bool>("SELECT snowflake_timestamp(0) = '2010-11-04 01:42:54.657Z'"));

    let text = page("docs/portable.md");
    let block = |language: &str| edit(block_with(blocks(&text, language), "id"));
    let given: serde_json::Map<String, Value> =
        PROGRAMS.iter().map(|(name, language)| (name.to_string(), block(language).into())).collect();
    let ids: Vec<&Value> = expected.iter().map(|row| &row[0]).collect();
    let python = repository().join("target/tools/portable/bin/python");
    assert!(python.exists(), "`scripts/setup portable` installs the programs");
    let mut python = command(python);
    python.arg("-I").arg(repository().join("tests/portable/warehouses.py"));
    let found: Value =
        serde_json::from_str(&typed(python, &json!({ "ids": ids, "blocks": given }).to_string())?).expect("JSON");
    for (name, _) in PROGRAMS {
        let rows = found[name].as_array().expect("rows");
        ensure!(rows.len() == expected.len(), "{name} has {} rows", rows.len());
        let wrong = rows.iter().zip(expected).find(|(found, expected)| found != expected);
        ensure!(wrong.is_none(), "{name} has {wrong:?}");
    }
    Ok(())
}

#[test]
fn every_program_reads_ids_like_the_library() {
    check("warehouses", |block| block).unwrap();
}

#[test]
fn a_wrong_expression_is_caught() {
    assert_caught(check("warehouses_epoch", |block| block.replace("1288834974657", "1288834974658")), "duckdb has");
    // Only one program has this mistake.
    let shifted = |block: String| block.replace("pl.col(\"id\") // 2**12", "pl.col(\"id\") // 2**11");
    assert_caught(check("warehouses_worker", shifted), "polars has");
}
