//! docs/queries.md: what its blocks do beyond what they print, which `pages.rs` compares. This file tests their plans, and what
//! an import of history must never do.

use cluster::{Answer, Client, Cluster, block_with, blocks, page, sqlstate};

/// Returns the only block of the page that contains this text.
fn block(part: &str) -> String {
    block_with(blocks(&page("docs/queries.md"), "sql"), part)
}

/// Returns the plan of the last statement in a block, without indentation.
fn plan_of_last(session: &mut Client, block: &str) -> String {
    let statement = block.trim_end().trim_end_matches(';').rsplit(";\n").next().expect("a statement");
    session.plan(statement)
}

/// Starts a server with the page's table, which contains rows for ten days from a hundred tenants.
fn server(name: &str) -> (Cluster, Client) {
    let server = Cluster::builder(name).start();
    let mut session = server.session();
    session.batch_execute(&block("CREATE TABLE invoices")).expect("the page's table");
    let rows = "INSERT INTO invoices SELECT snowflake_encode(now() - n * interval '8 s', 2, 0), n % 100, n
         FROM generate_series(1, 108000) AS n;
         ANALYZE invoices";
    session.batch_execute(rows).expect("rows");
    (server, session)
}

#[test]
fn a_tenants_rows_are_a_range_of_its_index_in_order() {
    let (_server, mut session) = server("queries_tenant");
    let plan = plan_of_last(&mut session, &block("CREATE TABLE invoices"));
    assert!(plan.contains("Index Scan Backward using invoices_tenant_id_id_idx"), "{plan}");
    assert!(plan.contains("tenant_id = 7) AND (id >= ") && !plan.contains("Filter"), "{plan}");
    assert!(!plan.contains("Sort"), "{plan}");
}

#[test]
fn a_view_with_the_time_is_asked_by_the_index() {
    let (_server, mut session) = server("queries_view");
    let view = block("CREATE VIEW invoices_with_time");
    session.batch_execute(&view).expect("the page's view");
    let plan = plan_of_last(&mut session, &view);
    assert!(plan.contains("Index Cond") && plan.contains("invoices_pkey") && !plan.contains("Filter"), "{plan}");
    // The page warns of this plan.
    let plan = session.plan("SELECT total FROM invoices_with_time WHERE created_at >= now() - interval '1 day'");
    assert!(plan.contains("Seq Scan on invoices") && plan.contains("Filter"), "{plan}");
    let generated = "ALTER TABLE invoices ADD created_at timestamptz GENERATED ALWAYS AS (snowflake_timestamp(id, '41:10:12')) STORED";
    assert!(page("docs/queries.md").contains(generated.strip_prefix("ALTER TABLE invoices ADD ").expect("a column")));
    session.batch_execute("DROP VIEW invoices_with_time").expect("a view");
    session.batch_execute(generated).expect("the page's column");
    assert_eq!(session.one::<i64>("SELECT count(*) FROM invoices WHERE created_at <> snowflake_timestamp(id)"), 0);
}

#[test]
fn each_day_of_a_chart_is_a_range_of_the_index() {
    let (_server, mut session) = server("queries_days");
    let plan = plan_of_last(&mut session, &block("LEFT JOIN invoices"));
    assert!(plan.contains("Nested Loop Left Join") && plan.contains("invoices_pkey"), "{plan}");
    assert!(plan.contains("Index Cond: ((id >= ") && !plan.contains("Join Filter"), "{plan}");
}

#[test]
fn an_import_keeps_the_times_and_repeats_no_id() {
    let (_server, mut session) = server("queries_import");
    let import = block("CREATE TABLE old_invoices");
    session.batch_execute(&import).expect("the page's import");
    let kept: i64 = session.one(
        "SELECT count(*) FROM (SELECT date_trunc('milliseconds', created_at), tenant_id, total FROM old_invoices
         INTERSECT SELECT snowflake_timestamp(id), tenant_id, total FROM invoices) AS kept",
    );
    assert_eq!(kept, 5_006);
    // The rows of a tick have a different worker ID for each 4096 rows, and another server cannot have issued these IDs.
    let workers: Vec<i32> = session.all(
        "SELECT DISTINCT worker_id FROM invoices, snowflake_decode(id) WHERE created_at < '2025-01-01' ORDER BY worker_id",
    );
    assert_eq!(workers, [1000, 1001]);
    // The import is refused if it is repeated, and also if a tick has too many rows for one worker ID.
    let insert = &import[import.find("INSERT INTO invoices").expect("an INSERT")..];
    assert_eq!(session.code(insert).as_deref(), Some("23505"));
    let full = insert.replace("1000 + n / 4096, n % 4096", "1002, n");
    assert_ne!(full, insert);
    let (code, message, ..) = sqlstate(&session.batch_execute(&full).expect_err("4097 rows of a tick"));
    assert_eq!((code.as_str(), message.as_str()), ("22023", "sequence number 4096 is out of range"));
    // IDs issued from now on are above the imported IDs.
    assert!(session.one::<bool>(
        "INSERT INTO invoices (tenant_id, total) VALUES (7, 1) RETURNING id > (SELECT max(id) FROM invoices, \
         snowflake_decode(id) WHERE worker_id >= 1000)"
    ));
}
