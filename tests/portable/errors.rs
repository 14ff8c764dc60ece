//! The portable functions raise the errors of the library: the same SQLSTATE, message, detail and hint.

use cluster::{Answer, Client, assert_caught, ensure, sqlstate};
use serde_json::Value;

use crate::compare::vectors;
use crate::server::{library, script, spoilt, twin};

/// Calls that the vectors do not contain.
const CALLS: [&str; 35] = [
    "snowflake_decode(-1)",
    "snowflake_describe(-5)",
    "snowflake_timestamp(-9223372036854775808)",
    "snowflake_timestamp(-1, 'sonyflake')",
    "snowflake_describe(1048576, '10:2:3:4', '2020-01-01Z')",
    "snowflake_encode('2009-01-01Z', 1, 1)",
    "snowflake_encode('infinity', 1, 1)",
    "snowflake_encode('2024-01-01Z', 1024, 4096, 1)",
    "snowflake_encode('2024-01-01Z', 1024, -1, 0)",
    "snowflake_encode('2024-01-01Z', 1, 4096)",
    "snowflake_encode('2009-01-01Z', 1024, 1)",
    "snowflake_encode('2024-01-01Z', -1, 1, layout => 'mastodon')",
    "snowflake_encode('2024-01-01Z', 1, 1, layout => 'mastodon', epoch => '2020-01-01Z')",
    "snowflake_min_id('-infinity', '62:0:1@1s')",
    "snowflake_min_id('1960-01-01Z', '62:0:1@1s', '1970-01-01Z')",
    "snowflake_max_id('0044-03-15 BC')",
    "snowflake_timestamp(9223372036854775807, '62:0:1@1s')",
    "snowflake_decode(0, 'twitter', '1969-12-31 23:59:59.999Z')",
    "snowflake_decode(0, 'twitter', '2200-01-01Z')",
    "snowflake_decode(0, 'twitter', '2024-01-01 00:00:00.0005Z')",
    "snowflake_decode(0, 'none', 'infinity')",
    "snowflake_decode(0, E'41:10:12\\n@1ms\\t\\'\"\\\\')",
    "snowflake_decode(0, repeat('x', 61))",
    "snowflake_decode(0, repeat(' ', 101) || '41:10:12')",
    "snowflake_from_text(repeat('0', 70))",
    "snowflake_from_text('1541815603606036480')",
    "snowflake_from_text('82541815603606')",
    "snowflake_from_text('15418156036060364800')",
    "snowflake_from_text('154181560360603648x')",
    "snowflake_check('orders')",
    "snowflake_check('orders', 'No \"such\" column')",
    "snowflake_check('\"Old orders\"', 'id')",
    "snowflake_check('orders', 'at')",
    "snowflake_check('orders', repeat('x', 64))",
    "snowflake_check(NULL)",
];

/// Returns the calls of the vectors that must raise an error.
fn calls() -> Vec<String> {
    let vectors: Value = serde_json::from_str(&vectors()).expect("JSON");
    let literal = |vector: &Value, name: &str| match &vector[name] {
        Value::Null => "NULL".into(),
        Value::String(text) => format!("'{}'", text.replace("+0", "").replace('\'', "''")),
        other => format!("'{}'", other.to_string().trim_matches('"')),
    };
    let call = |vector: &Value| {
        let part = |name: &str| literal(vector, name);
        let (layout, epoch) = (part("layout"), part("epoch"));
        match vector["call"].as_str().expect("a call") {
            "decode" => format!("snowflake_describe({}, {layout}, {epoch})", part("id")),
            "range" => format!("snowflake_max_id({}, {layout}, {epoch})", part("created_at")),
            "encode" => format!(
                "snowflake_encode({}, {}, {}, {}, {layout}, {epoch})",
                part("created_at"),
                part("worker_id"),
                part("sequence"),
                part("datacenter_id")
            ),
            "layout" => format!("snowflake_timestamp(0, '{}')", vector["layout"].as_str().expect("a text")),
            "from_text" => format!("snowflake_from_text({})", part("text")),
            "to_text" => format!("snowflake_to_text({})", part("id")),
            other => panic!("{other}"),
        }
    };
    vectors["errors"].as_array().expect("a list").iter().map(call).collect()
}

/// Compares the errors of calls. An ID that is no `bigint` is an error of PostgreSQL.
fn check(library: &mut Client, twin: &mut Client, calls: &[String]) -> Result<(), String> {
    for session in [&mut *library, &mut *twin] {
        session
            .run("CREATE TABLE orders (number bigint, at timestamptz); CREATE TABLE \"Old orders\" (at timestamptz)");
    }
    for call in calls {
        let query = format!("SELECT {call}");
        let error = |session: &mut Client| session.batch_execute(&query).map_err(|error| sqlstate(&error));
        let (Err(ours), theirs) = (error(library), error(twin)) else { return Err(format!("{call} is right")) };
        ensure!(theirs.as_ref() == Err(&ours), "{call}: {theirs:?} is not {ours:?}");
    }
    Ok(())
}

#[test]
fn errors_are_those_of_the_library() {
    let (_library, mut library) = library("errors");
    let (_twin, mut twin) = twin("errors", &script("errors"));
    let mut calls = calls();
    assert!(calls.len() > 200, "{} calls", calls.len());
    calls.extend(CALLS.map(String::from));
    check(&mut library, &mut twin, &calls).unwrap();
    let missing = "SELECT snowflake_check(99999::oid::regclass)";
    assert_eq!(library.refusal(missing), twin.refusal(missing));
}

#[test]
fn an_error_with_another_text_is_caught() {
    let (_library, mut library) = library("errors_wrong");
    let mistake = ("The largest ID of this layout is %s.", "The last ID of this layout is %s.");
    let (_twin, mut twin) = twin("errors_wrong", &spoilt("errors_wrong", mistake));
    assert_caught(check(&mut library, &mut twin, &calls()), "The last ID of this layout is");
}

/// NULL in place of any argument gives NULL.
const NULLS: [&str; 12] = [
    "snowflake_timestamp(NULL)",
    "snowflake_timestamp(-1, NULL)",
    "snowflake_timestamp(-1, 'discord', NULL)",
    "snowflake_describe(-1, NULL)",
    "snowflake_encode(NULL, 5000, 1)",
    "snowflake_encode('1960-01-01Z', NULL, 1)",
    "snowflake_encode('1960-01-01Z', 1, 1, NULL)",
    "snowflake_encode('1960-01-01Z', 1, 1, layout => NULL)",
    "snowflake_min_id(NULL)",
    "snowflake_max_id('1960-01-01Z', NULL)",
    "snowflake_first_id_from(NULL)",
    "snowflake_to_text(NULL)",
];

#[test]
fn a_null_argument_gives_null() {
    let (_library, mut library) = library("nulls");
    let (_twin, mut twin) = twin("nulls", &script("nulls"));
    for call in NULLS {
        for session in [&mut library, &mut twin] {
            assert!(session.one::<bool>(&format!("SELECT {call} IS NULL")), "{call}");
        }
    }
    // The planner reads a constant layout before there is an ID.
    let wrong = "SELECT snowflake_timestamp(NULL, 'none')";
    assert_eq!((library.code(wrong), twin.code(wrong)), (None, Some("22023".into())));
}
