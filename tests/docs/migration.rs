//! Types the blocks of docs/migration.md on live tables, and checks what the page promises about rows, locks, order and
//! uniqueness.

use cluster::{Answer, Client, assert_caught, ensure, printed, sqlstate};

use page::{AS_WRITTEN, Edit, page, sections};
use pgedge::{NODE_ABOVE, PGEDGE};

mod application;
mod back;
mod integer;
mod large;
mod locks;
mod merge;
pub mod page;
mod pgedge;
mod reference;
mod serial;
mod subscriber;
mod uuid;

/// Returns where the rows of a table are, in which files the table and its indexes are, and its constraints. None of this changes
/// if nothing is rewritten.
fn place(session: &mut Client, table: &str, rows: &str) -> String {
    session.one(&format!(
        "SELECT concat_ws(' ', pg_relation_filenode('{table}'),
             (SELECT string_agg(concat(indexrelid, ':', pg_relation_filenode(indexrelid)), ',' ORDER BY indexrelid)
              FROM pg_index WHERE indrelid = '{table}'::regclass),
             (SELECT md5(string_agg(concat(ctid, t), ',' ORDER BY ctid)) FROM {table} AS t WHERE {rows}),
             (SELECT string_agg(concat(oid, conname), ',' ORDER BY oid) FROM pg_constraint
              WHERE '{table}'::regclass IN (conrelid, confrelid)))"
    ))
}

pub fn filenode(session: &mut Client, table: &str) -> u32 {
    session.one(&format!("SELECT pg_relation_filenode('{table}')"))
}

/// Returns the columns of a table, each with the table. A column that may be NULL has a question mark.
fn columns(session: &mut Client, table: &str) -> Vec<String> {
    session.all(&format!(
        "SELECT concat('{table}.', attname, CASE WHEN NOT attnotnull THEN '?' END) FROM pg_attribute
         WHERE attrelid = '{table}'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY 1"
    ))
}

/// Returns all columns, constraints, indexes, triggers and functions.
fn catalog(session: &mut Client) -> Vec<String> {
    session.all(
        "SELECT concat_ws(' ', attrelid::regclass, attname, format_type(atttypid, atttypmod), attnotnull) AS part
         FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
         WHERE relnamespace = 'public'::regnamespace AND NOT attisdropped
         UNION ALL SELECT concat_ws(' ', conrelid::regclass, conname, pg_get_constraintdef(oid)) FROM pg_constraint
         WHERE connamespace = 'public'::regnamespace
         UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'
         UNION ALL SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
         UNION ALL SELECT oid::regprocedure::text FROM pg_proc WHERE pronamespace = 'public'::regnamespace ORDER BY part",
    )
}

/// The statements that create a shop, whose tables get their keys in different ways.
const SHOP: &str = "CREATE TABLE orders (id bigserial PRIMARY KEY, customer text NOT NULL);
     CREATE TABLE order_lines (order_id bigint NOT NULL REFERENCES orders, line int NOT NULL, PRIMARY KEY (order_id, line));
     CREATE TABLE invoices (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, total int);
     INSERT INTO orders (customer) SELECT 'old' FROM generate_series(1, 1000);
     INSERT INTO order_lines SELECT id, 1 FROM orders;
     INSERT INTO invoices (total) SELECT generate_series(1, 1000)";

/// Runs a client's INSERT, and adds the ID that it returns to `ids`.
fn write(session: &mut Client, ids: &mut Vec<i64>, insert: &str) -> Result<(), String> {
    let row = session.query_one(insert, &[]).map_err(|error| sqlstate(&error).1)?;
    ids.push(row.get(0));
    Ok(())
}

/// Runs other statements of a client.
fn act(session: &mut Client, sql: &str) -> Result<(), String> {
    session.batch_execute(sql).map_err(|error| format!("{}\n{sql}", sqlstate(&error).1))
}

/// Returns the result of a query on the page, each row as one text.
fn answers(session: &mut Client, query: &str, edit: Edit) -> Result<Vec<String>, String> {
    let query = if edit == AS_WRITTEN { query.into() } else { query.replace(edit.0, edit.1) };
    printed(session, &query).map_err(|error| sqlstate(&error).1)
}

/// Inserts an order with a line, and an invoice.
const ORDER: &str = "WITH new AS (INSERT INTO orders (customer) VALUES ('live') RETURNING id),
    line AS (INSERT INTO order_lines SELECT id, 1 FROM new), invoice AS (INSERT INTO invoices (total) VALUES (0))
    SELECT id FROM new";

fn check_order(ids: &[i64]) -> Result<(), String> {
    ensure!(ids.windows(2).all(|pair| pair[0] < pair[1]), "an ID sorts before an old one: {ids:?}");
    Ok(())
}

/// Asserts that a check notices an edit, and that its reason contains this text.
fn assert_caught_edit(check: impl Fn(Edit) -> Result<usize, String>, edit: Edit, reason: &str) {
    println!("{edit:?}");
    assert_caught(check(edit).map(drop), reason);
}

#[test]
fn the_page_does_what_it_says() {
    type Check = dyn Fn() -> Result<usize, String>;
    let checks: [(&str, &Check); 13] = [
        ("From bigserial or identity", &|| serial::check_serial(AS_WRITTEN)),
        ("From UUIDs", &|| uuid::check_uuid("0.3 ms", AS_WRITTEN)),
        ("Small tables with integer keys", &|| integer::check_small_integer(AS_WRITTEN)),
        (large::LARGE, &|| large::check_large(AS_WRITTEN)),
        (large::UNDO, &|| large::check_undo(AS_WRITTEN)),
        (reference::REFERENCE, &|| reference::check_reference(AS_WRITTEN)),
        (PGEDGE, &|| pgedge::check_pgedge(NODE_ABOVE, AS_WRITTEN)),
        (pgedge::LOWEST, &pgedge::check_node_lowest),
        (pgedge::DEFAULT, &|| pgedge::check_default_layout("0")),
        ("IDs made by the application", &|| application::check_application(AS_WRITTEN)),
        ("Merge several databases", &|| merge::check_merge(AS_WRITTEN)),
        ("Back to a sequence", &|| back::check_back(AS_WRITTEN)),
        (serial::OLD_ROWS, &|| serial::check_old_rows(AS_WRITTEN)),
    ];
    let titles: Vec<String> = sections().into_iter().map(|section| section.title).collect();
    assert_eq!(titles, checks.map(|(title, _)| title), "a section is not checked");
    let run: usize = checks.iter().map(|(title, check)| check().unwrap_or_else(|e| panic!("{title}: {e}"))).sum();
    assert_eq!(run, page().lines().filter(|line| line.starts_with("```")).count() / 2, "a block was not run");
}
