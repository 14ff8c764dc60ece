//! From bigserial or identity: only the default changes.

use cluster::{Answer, Client, assert_caught, ensure};

use crate::page::{AS_WRITTEN, Edit, Run};
use crate::{ORDER, check_order, place, shop, write};

/// Rows are neither moved nor changed, references hold, new IDs come after old ones.
pub fn check_serial(edit: Edit) -> Result<usize, String> {
    let mut run = Run::on(edit, &shop());
    let mut session = run.server.connect();
    let tables = ["orders", "order_lines", "invoices"];
    let places = |session: &mut Client| {
        let rows = ["id <= 1000", "order_id <= 1000", "id <= 1000"];
        [0, 1, 2].map(|n| place(session, tables[n], rows[n]))
    };
    let before = places(&mut session);
    let mut ids = Vec::new();
    run.section("From bigserial or identity", |session, _| write(session, &mut ids, ORDER))?;
    ensure!(places(&mut session) == before, "rows were rewritten, or constraints made anew");
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

#[test]
fn a_migration_that_rewrites_is_caught() {
    let edit = ("ALTER COLUMN id SET DEFAULT", "ALTER COLUMN id TYPE bigint USING id + 0, ALTER COLUMN id SET DEFAULT");
    assert_caught(check_serial(edit).map(drop), "rows were rewritten");
}

/// A transaction that only reads keeps the change waiting, and everybody else behind the change no longer than 500 ms.
fn check_timeout(edit: Edit) -> Result<(), String> {
    let mut run = Run::on(edit, &shop());
    let mut reader = run.server.connect();
    reader.batch_execute("BEGIN; SELECT FROM orders").expect("a reader");
    let failed = run.section("From bigserial or identity", |_, _| Ok(())).expect_err("the reader was not waited for");
    ensure!(failed.contains("due to lock timeout"), "the change waits on: {failed}");
    reader.batch_execute("COMMIT").expect("a reader");
    run.section("From bigserial or identity", |_, _| Ok(()))
}

#[test]
fn a_change_that_has_to_wait_gives_up_and_can_be_tried_again() {
    check_timeout(AS_WRITTEN).unwrap();
}

#[test]
fn a_change_without_a_lock_timeout_is_caught() {
    assert_caught(check_timeout(("SET LOCAL lock_timeout = '500ms';", "")), "the change waits on");
}
