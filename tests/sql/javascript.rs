//! IDs are sent to a browser and back. JavaScript's numbers are exact up to 2^53 - 1, so IDs of 53 bits can be sent as numbers,
//! and longer ones as text.

use std::io::Write;
use std::process::Stdio;

use cluster::{Answer, Builder, Client, Cluster, assert_caught, command, ensure};

/// Processes rows like a browser: parses them, makes new objects, and sends these.
const BROWSER: &str = "
    const rows = JSON.parse(require('fs').readFileSync(0, 'utf8'));
    process.stdout.write(JSON.stringify(rows.map((row) => ({ n: row.n, id: row.id }))));
";

/// Does the same in the order of the texts.
const SORTING_BROWSER: &str = "
    const rows = JSON.parse(require('fs').readFileSync(0, 'utf8'));
    rows.sort((a, b) => (a.id < b.id ? -1 : 1));
    process.stdout.write(JSON.stringify(rows.map((row, at) => ({ n: at + 1, id: row.id }))));
";

/// The output of a program in node with this input.
fn node(program: &str, input: &str) -> String {
    let mut node = command("node")
        .args(["-e", program])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("node is installed (Debian: nodejs)");
    node.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("node reads");
    let output = node.wait_with_output().expect("node ends");
    assert!(output.status.success(), "node failed, see above");
    String::from_utf8(output.stdout).expect("JSON is UTF-8")
}

/// A server with 1,002 orders, numbered in the order of their IDs: the first ID of the layout, issued IDs, and the last ID.
fn orders(builder: Builder) -> (Cluster, Client) {
    let (server, mut session) = builder.start_session();
    session
        .run(
            "CREATE TABLE orders (n integer GENERATED ALWAYS AS IDENTITY, id bigint PRIMARY KEY DEFAULT snowflake_nextval());
         INSERT INTO orders (id) VALUES (0);
         INSERT INTO orders (id) SELECT snowflake_nextval() FROM generate_series(1, 1000);
         INSERT INTO orders (id) VALUES (snowflake_last_id_before('infinity'))",
        );
    (server, session)
}

/// Converts a number from a message to a key. Numbers in JavaScript can be larger than any `bigint`.
const NUMBER: &str = "CASE WHEN received.id::numeric <= 9223372036854775807 THEN received.id::bigint END";

/// Sends every order with its key as `sent` in an array of row_to_json, and finds each returned order by its primary key.
fn check_trip(session: &mut Client, sent: &str, back: &str, browser: &str) -> Result<(), String> {
    let rows: String = session.one(&format!(
        "SELECT json_agg(row_to_json(o) ORDER BY n DESC)::text FROM (SELECT {sent} AS id, n FROM orders) AS o"
    ));
    let received = node(browser, &rows);
    let find = format!(
        "SELECT count(*) FROM json_to_recordset($1::text::json) AS received (id text, n integer)
         JOIN orders AS o ON o.id = {back} AND o.n = received.n"
    );
    session.run("SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off");
    let plan = session.plan(&find.replace("$1", "'[]'"));
    ensure!(plan.contains("orders_pkey") && plan.contains("Index Cond: (id ="), "not by primary key:\n{plan}");
    let found: i64 = session.query_one(&find, &[&received]).expect("JSON that PostgreSQL reads").get(0);
    ensure!(found == 1_002, "{} of 1002 IDs came back changed", 1_002 - found);
    Ok(())
}

#[test]
fn ids_of_53_bits_pass_as_numbers() {
    let (_server, mut session) = orders(Cluster::builder("javascript_53").set("snowflake_pg.layout", "41:4:8"));
    // Number.MAX_SAFE_INTEGER, which is also the last ID of the layout, with the largest value in every field.
    let last: i64 = session.one("SELECT snowflake_encode(snowflake_timestamp(9007199254740991), 15, 255)");
    assert_eq!(last.to_string(), node("process.stdout.write(String(Number.MAX_SAFE_INTEGER))", ""));
    assert_eq!(last, session.one::<i64>("SELECT max(id) FROM orders"));
    check_trip(&mut session, "id", NUMBER, BROWSER).unwrap();
    // Also outside of a row.
    for id in session.all::<i64>("SELECT id FROM orders") {
        let json: String = session.one(&format!("SELECT to_json({id}::bigint)::text"));
        assert_eq!(json, id.to_string());
    }
    let ids: String = session.one("SELECT to_json(array_agg(id ORDER BY id))::text FROM orders");
    assert_eq!(
        node("process.stdout.write(JSON.stringify(JSON.parse(require('fs').readFileSync(0, 'utf8'))))", &ids),
        ids
    );
}

#[test]
fn longer_ids_pass_as_text_and_not_as_numbers() {
    let (_server, mut session) = orders(Cluster::builder("javascript_63"));
    check_trip(&mut session, "id::text", "received.id::bigint", BROWSER).unwrap();
    check_trip(&mut session, "snowflake_to_text(id)", "snowflake_from_text(received.id)", BROWSER).unwrap();
    // JavaScript sorts these texts like the numbers. It sorts decimal digits like that only if the numbers have equally many.
    check_trip(&mut session, "snowflake_to_text(id)", "snowflake_from_text(received.id)", SORTING_BROWSER).unwrap();
    let outcome = check_trip(&mut session, "id", NUMBER, BROWSER);
    assert_caught(outcome, "of 1002 IDs came back changed");
}

#[test]
fn a_description_keeps_all_digits() {
    let (_server, mut session) = Cluster::builder("javascript_described").start_session();
    let read = "process.stdout.write(String(JSON.parse(require('fs').readFileSync(0, 'utf8')).id))";
    let id = 1_766_614_946_411_443_056_i64;
    let described: String = session.one(&format!("SELECT snowflake_describe({id})::text"));
    assert_eq!(node(read, &described), id.to_string());
    // The control: as a number the ID would change.
    assert_ne!(node(read, &format!("{{\"id\": {id}}}")), id.to_string());
}
