//! Back to a sequence.

use cluster::{Answer, assert_caught, ensure};

use crate::page::{Edit, Run};
use crate::{ORDER, check_order, shop, write};

/// The sequence goes on above every ID, and the extension can go.
pub fn check_back(edit: Edit) -> Result<usize, String> {
    let tables = shop()
        + ";
         ALTER TABLE orders ALTER COLUMN id SET DEFAULT snowflake_nextval(); DROP SEQUENCE orders_id_seq;
         ALTER TABLE invoices ALTER COLUMN id DROP IDENTITY, ALTER COLUMN id SET DEFAULT snowflake_nextval()";
    let mut run = Run::on(edit, &tables);
    let mut ids = Vec::new();
    run.section("Back to a sequence", |session, next| {
        write(session, &mut ids, ORDER)?;
        if next.contains("CREATE SEQUENCE") {
            // Held by a client, in no row.
            ids.extend(session.batch(1_000));
        }
        Ok(())
    })?;
    check_order(&ids)?;
    let left: i64 = run.server.connect().one("SELECT count(*) FROM pg_extension WHERE extname = 'snowflake_pg'");
    ensure!(left == 0, "the extension is left");
    Ok(run.blocks)
}

#[test]
fn a_sequence_that_begins_at_1_is_caught() {
    let edit = ("SELECT setval('orders_id_seq', greatest(max(id), snowflake_nextval())) FROM orders;", "");
    assert_caught(check_back(edit).map(drop), "duplicate key value");
}

#[test]
fn a_sequence_that_begins_below_ids_in_clients_is_caught() {
    assert_caught(
        check_back(("greatest(max(id), snowflake_nextval())", "max(id)")).map(drop),
        "sorts before an old one",
    );
}
