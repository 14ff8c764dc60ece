//! From bigserial or identity, by changing only the default.

use std::time::Duration;

use cluster::{Answer, Client, assert_caught, ensure, within};

use crate::migration::page::{AS_WRITTEN, Edit, SectionRun, builder};
use crate::migration::{ORDER, SHOP, act, answers, assert_caught_edit, check_order, place, write};

const SERIAL: &str = "From bigserial or identity";
pub const OLD_ROWS: &str = "Rows from before the migration";

/// Creates what the page's query must find: a column that refers to the key and has a smaller type.
const REFUNDS: &str = "CREATE TABLE refunds (order_id integer REFERENCES orders); INSERT INTO refunds VALUES (1)";

/// Widens the column that the query finds.
const WIDEN_REFUNDS: &str = "ALTER TABLE refunds ALTER COLUMN order_id TYPE bigint";

pub fn check_serial(edit: Edit) -> Result<usize, String> {
    check(edit, SHOP, WIDEN_REFUNDS)
}

/// Checks that rows are neither moved nor changed, that references hold, and that new IDs sort after old IDs. `first` is run
/// before the change.
fn check(edit: Edit, tables: &str, first: &str) -> Result<usize, String> {
    let mut run = SectionRun::on(edit, &format!("{tables}; {REFUNDS}"));
    let mut session = run.server.connect();
    let tables = ["orders", "order_lines", "invoices"];
    let places = |session: &mut Client| {
        let rows = ["id <= 1000", "order_id <= 1000", "id <= 1000"];
        [0, 1, 2].map(|n| place(session, tables[n], rows[n]))
    };
    let mut before = None;
    let mut ids = Vec::new();
    run.section(SERIAL, |session, next| {
        if next.contains("confrelid = 'orders'") {
            let narrow = answers(session, next, edit)?;
            ensure!(narrow == ["refunds order_id integer"], "narrow references: {narrow:?}");
            act(session, first)?;
            before = Some(places(session));
        }
        if next.contains("snowflake_min_id(now())") {
            let after = answers(session, next, AS_WRITTEN)?;
            ensure!(after == ["t"], "the page says that new IDs would sort before old ones");
        }
        write(session, &mut ids, ORDER)?;
        act(session, &format!("INSERT INTO refunds VALUES ({})", ids[ids.len() - 1]))
    })?;
    ensure!(before == Some(places(&mut session)), "rows or indexes were rewritten, or constraints made anew");
    check_order(&ids)?;
    ensure!(ids.last() > Some(&(1 << 60)), "no snowflake came: {ids:?}");
    for table in ["orders", "invoices"] {
        let wrong: i64 = session.one(&format!(
            "SELECT count(*) FROM {table} WHERE (id >= snowflake_min_id('2024-01-01 00:00+00')) <> (id > 1000000)
                OR id < 1000000 AND snowflake_timestamp(id) <> '2010-11-04 01:42:54.657+00'"
        ));
        ensure!(wrong == 0, "old and new are not told apart");
    }
    assert_eq!(session.one::<String>("SELECT snowflake_timestamp(1000000000)::text"), "2010-11-04 01:42:54.895+00");
    ensure!(session.code("SELECT nextval('orders_id_seq')").as_deref() == Some("42P01"), "the sequence goes on");
    assert_eq!(session.code("INSERT INTO order_lines VALUES (0, 1)").as_deref(), Some("23503"));
    Ok(run.blocks)
}

/// Creates orders of the last 1,000 hours with keys from a sequence, and ten with snowflakes.
const OLD_AND_NEW: &str =
    "CREATE TABLE orders (id bigserial PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT now());
     INSERT INTO orders (created_at) SELECT now() - (n - 0.5) * interval '1 hour' FROM generate_series(1, 1000) AS n;
     ALTER TABLE orders ALTER COLUMN id SET DEFAULT snowflake_nextval();
     INSERT INTO orders SELECT FROM generate_series(1, 10)";

/// Checks that a range of IDs misses the old rows, as the page says, and that the page's query finds each row of the range once.
pub fn check_old_rows(edit: Edit) -> Result<usize, String> {
    let mut run = SectionRun::on(edit, OLD_AND_NEW);
    run.section(OLD_ROWS, |session, next| {
        if next.contains("UNION ALL") {
            let mut found = answers(session, next, edit)?;
            found.sort();
            let mut all: Vec<String> = session.all(
                "SELECT concat_ws(' ', id, created_at) FROM orders WHERE created_at >= now() - interval '30 days'",
            );
            all.sort();
            ensure!(found == all && all.len() == 730, "{} rows are found, and not {}", found.len(), all.len());
        }
        Ok(())
    })?;
    let mut session = run.server.connect();
    let between = |session: &mut Client, start: &str| -> i64 {
        session.one(&format!(
            "SELECT count(*) FROM orders WHERE snowflake_between(id, {start}, now() + interval '1 minute')"
        ))
    };
    assert_eq!(between(&mut session, "now() - interval '30 days'"), 10);
    assert_eq!(between(&mut session, "'-infinity'"), 1_010);
    Ok(run.blocks)
}

#[test]
fn rows_from_before_the_migration_are_found_by_their_time() {
    check_old_rows(AS_WRITTEN).unwrap();
    let limit = "id < snowflake_min_id('2024-01-01 00:00+00') AND ";
    let old = format!("\nUNION ALL\nSELECT * FROM orders WHERE {limit}created_at >= now() - interval '30 days'");
    assert_caught(check_old_rows((&old, "")).map(drop), "10 rows are found, and not 730");
    assert_caught(check_old_rows((limit, "")).map(drop), "740 rows are found, and not 730");
    for page in ["docs/queries.md", "docs/partitions.md"] {
        assert!(cluster::page(page).contains("(migration.md#rows-from-before-the-migration)"), "{page} says nothing");
    }
}

#[test]
fn a_migration_from_a_sequence_without_a_step_is_caught() {
    let caught = |edit: Edit, reason: &str| assert_caught_edit(check_serial, edit, reason);
    let default = "ALTER COLUMN id SET DEFAULT";
    let rewrites = format!("ALTER COLUMN id TYPE bigint USING id + 0, {default}");
    caught((default, &rewrites), "rows or indexes were rewritten");
    let dropped = "DROP SEQUENCE orders_id_seq;";
    let index = format!("{dropped} REINDEX INDEX orders_pkey;");
    caught((dropped, &index), "rows or indexes were rewritten");
    caught(("<> 'bigint'", "= 'bigint'"), "narrow references: [\"order_lines");
    // The page's query finds a column that would cause an error after the change.
    assert_caught(check(AS_WRITTEN, SHOP, "").map(drop), "integer out of range");
    assert_caught(check(AS_WRITTEN, &by_ranges(), WIDEN_REFUNDS).map(drop), "no partition of relation \"orders\"");
    assert_caught(check_timeout(("SET LOCAL lock_timeout = '500ms';", "")), "the change waits on");
}

/// The page's query shows whether the promise about the order does not hold.
#[test]
fn old_ids_above_snowflakes_are_seen() {
    let above = format!("{SHOP}; INSERT INTO orders VALUES (1::bigint << 62, 'above')");
    assert_caught(check(AS_WRITTEN, &above, WIDEN_REFUNDS).map(drop), "would sort before old ones");
}

/// Returns a shop whose orders are partitioned by ranges of their IDs, with a partition for the IDs from the sequence.
fn by_ranges() -> String {
    SHOP.replace(
        "customer text NOT NULL);",
        "customer text NOT NULL) PARTITION BY RANGE (id);
         CREATE TABLE few PARTITION OF orders FOR VALUES FROM (1) TO (9999);",
    )
}

#[test]
fn a_table_partitioned_by_ranges_gets_its_partitions_first() {
    let first = format!("{WIDEN_REFUNDS}; SELECT snowflake_create_partitions('orders', '1 day', 7)");
    check(AS_WRITTEN, &by_ranges(), &first).unwrap();
    let first = format!("{WIDEN_REFUNDS}; CREATE TABLE others PARTITION OF orders DEFAULT");
    check(AS_WRITTEN, &by_ranges(), &first).unwrap();
}

/// Checks that a transaction that only reads makes the change wait, and that the change blocks all other sessions for at most 500
/// ms.
fn check_timeout(edit: Edit) -> Result<(), String> {
    let mut run = SectionRun::on(edit, SHOP);
    run.patience = 8;
    let mut reader = run.server.connect();
    reader.batch_execute("BEGIN; SELECT FROM orders").expect("a reader");
    let failed = run.section(SERIAL, |_, _| Ok(())).expect_err("the reader was not waited for");
    ensure!(failed.contains("due to lock timeout"), "the change waits on: {failed}");
    reader.batch_execute("COMMIT").expect("a reader");
    run.section(SERIAL, |_, _| Ok(()))
}

#[test]
fn a_change_that_has_to_wait_gives_up_and_can_be_tried_again() {
    check_timeout(AS_WRITTEN).unwrap();
}

/// Checks that a slow autovacuum of the table is cancelled in favour of the change.
fn check_autovacuum(edit: Edit) -> Result<(), String> {
    let server = builder().set("autovacuum", "on").set("autovacuum_naptime", "1s");
    let server = server.set("autovacuum_vacuum_cost_delay", "100ms").set("autovacuum_vacuum_cost_limit", "1").start();
    let mut session = server.session();
    session
        .batch_execute(&format!(
            "{SHOP}; ALTER TABLE orders SET (autovacuum_vacuum_threshold = 1, autovacuum_vacuum_scale_factor = 0);
             UPDATE orders SET customer = repeat('old', 1000)"
        ))
        .expect("tables can be made");
    let at_work = "SELECT EXISTS (SELECT FROM pg_locks JOIN pg_stat_activity USING (pid)
        WHERE backend_type = 'autovacuum worker' AND relation = 'orders'::regclass)";
    ensure!(within(Duration::from_secs(60), || session.one(at_work)), "autovacuum does not begin");
    SectionRun::of(server, edit).section(SERIAL, |_, _| Ok(()))
}

#[test]
fn an_autovacuum_gives_way_where_the_page_says_so() {
    let edit = ("lock_timeout = '500ms';", "lock_timeout = '500ms'; SET LOCAL deadlock_timeout = '100ms';");
    check_autovacuum(edit).unwrap();
    assert_caught(check_autovacuum(AS_WRITTEN), "due to lock timeout");
}
