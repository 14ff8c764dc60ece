//! Integer columns that refer to a bigint key, by adding a new column to a large table.

use cluster::{Answer, assert_caught, ensure};

use crate::migration::page::{AS_WRITTEN, Edit, SectionRun, section};
use crate::migration::{act, assert_caught_edit, columns, filenode, write};

pub const REFERENCE: &str = "Integer columns that refer to a bigint key";

/// Creates orders with refunds and shipments, whose references are integers. One of the user's triggers moves shipments to another
/// order. The log shows whether a constraint was enough for `SET NOT NULL`.
pub const TABLES: &str = "ALTER ROLE CURRENT_USER SET log_min_messages = debug1;
     CREATE TABLE orders (id bigserial PRIMARY KEY, name text);
     CREATE TABLE refunds (order_id integer REFERENCES orders);
     CREATE TABLE shipments (id bigint PRIMARY KEY DEFAULT snowflake_nextval(),
         order_id integer NOT NULL REFERENCES orders ON DELETE CASCADE, parcel integer NOT NULL DEFAULT 1, name text,
         UNIQUE (order_id, parcel));
     INSERT INTO orders (name) SELECT n FROM generate_series(1, 12000) AS n;
     INSERT INTO shipments (order_id, name) SELECT id, name FROM orders;
     INSERT INTO refunds SELECT id FROM orders WHERE id <= 10;
     CREATE FUNCTION move() RETURNS trigger LANGUAGE plpgsql AS
     'BEGIN IF NEW.name = ''moved'' THEN NEW.order_id := 1; END IF; RETURN NEW; END';
     CREATE TRIGGER z_move BEFORE INSERT ON shipments FOR EACH ROW EXECUTE FUNCTION move()";

/// Inserts an order with a shipment, and returns the order's ID.
const ORDER: &str = "WITH new AS (INSERT INTO orders (name) VALUES ('live') RETURNING id),
    shipment AS (INSERT INTO shipments (order_id, name) SELECT id, 'live' FROM new) SELECT id FROM new";

/// Inserts a shipment that the user's trigger moves to order 1, and one as a subscription does. Then inserts an order with a shipment,
/// and deletes the order.
const OTHERS: &str = "INSERT INTO shipments (order_id, parcel, name)
     SELECT 2, max(parcel) + 1, 'moved' FROM shipments WHERE order_id = 1;
     SET session_replication_role = replica;
     INSERT INTO shipments (order_id, parcel, name) SELECT 3, max(parcel) + 1, '3' FROM shipments WHERE order_id = 3;
     RESET session_replication_role;
     WITH new AS (INSERT INTO orders (name) VALUES ('gone') RETURNING id)
     INSERT INTO shipments (order_id, name) SELECT id, 'gone' FROM new;
     DELETE FROM orders WHERE name = 'gone'";

pub fn check_reference(edit: Edit) -> Result<usize, String> {
    check(SectionRun::on(edit, TABLES))
}

/// Checks that the large table stays in its file, that clients write throughout, and that no row, reference or constraint is lost.
/// Afterwards, the default of the key is changed, and rows refer to snowflakes.
fn check(mut run: SectionRun) -> Result<usize, String> {
    let mut session = run.server.connect();
    let file = filenode(&mut session, "shipments");
    let before = columns(&mut session, "shipments");
    let (mut ids, mut others) = (Vec::new(), 0);
    let written = run.busy(&section(REFERENCE).blocks, ORDER, |session, _| {
        others += 1;
        act(session, OTHERS)?;
        write(session, &mut ids, ORDER)
    })?;
    ensure!(filenode(&mut session, "shipments") == file, "the table was rewritten");
    let types: Vec<String> = session.all(
        "SELECT concat(attrelid::regclass, ' ', atttypid::regtype) FROM pg_attribute
         WHERE attname = 'order_id' AND attrelid IN ('refunds'::regclass, 'shipments'::regclass) ORDER BY 1",
    );
    ensure!(types == ["refunds bigint", "shipments bigint"], "{types:?}");
    let wrong: i64 = session.one(
        "SELECT count(*) FROM shipments LEFT JOIN orders ON orders.id = order_id
         WHERE orders.id IS NULL OR CASE shipments.name WHEN 'moved' THEN orders.id <> 1 ELSE shipments.name <> orders.name END",
    );
    ensure!(wrong == 0, "{wrong} shipments belong to another order");
    let kept: i64 = session.one("SELECT count(*) FROM shipments");
    ensure!(kept == 12_000 + (ids.len() + 2 * others + written) as i64, "{kept} shipments are left");
    ensure!(columns(&mut session, "shipments") == before, "not every column is left, or may be NULL as before");
    let duplicate = "INSERT INTO shipments (order_id, parcel) VALUES (7, 1)";
    ensure!(session.code(duplicate).as_deref() == Some("23505"), "no unique constraint");
    ensure!(session.code("INSERT INTO shipments (order_id) VALUES (0)").as_deref() == Some("23503"), "no foreign key");
    let deleted = session.code("DELETE FROM orders WHERE id = 11");
    ensure!(deleted.is_none(), "the action of the foreign key is lost: {deleted:?}");
    let left: i64 = session.one(
        "SELECT (SELECT count(*) FROM pg_constraint WHERE conrelid = 'shipments'::regclass AND contype = 'c')
             + (SELECT count(*) FROM pg_trigger WHERE tgname = 'zz_widen')",
    );
    ensure!(left == 0, "{left} parts of the migration are left");
    let enough = "existing constraints on column \"shipments.new_order_id\" are sufficient";
    let nulls = !before.contains(&"shipments.order_id".into());
    ensure!(nulls || run.server.log().contains(enough), "SET NOT NULL reads the table");
    act(&mut session, "ALTER TABLE orders ALTER COLUMN id SET DEFAULT snowflake_nextval()")?;
    write(&mut session, &mut ids, ORDER)?;
    act(&mut session, &format!("INSERT INTO refunds VALUES ({})", ids[ids.len() - 1]))?;
    Ok(run.blocks)
}

/// A column that is changed in place, references that no trigger fills, and a unique constraint that is not created again.
#[test]
fn a_large_reference_that_is_changed_without_a_step_is_caught() {
    let caught = |edit: Edit, reason: &str| assert_caught_edit(check_reference, edit, reason);
    let table = "ALTER TABLE shipments";
    let in_place = format!("{table} ALTER COLUMN order_id TYPE bigint, ADD COLUMN");
    caught((&format!("{table} ADD COLUMN"), &in_place), "the table was rewritten");
    caught(("BEFORE INSERT OR UPDATE", "BEFORE UPDATE"), "check constraint \"new_order_id_filled\"");
    let constraint = format!("{table} ADD CONSTRAINT shipments_order_id_parcel_key UNIQUE USING INDEX");
    caught((&constraint, "DROP INDEX"), "no unique constraint");
}

#[test]
fn a_reference_that_can_be_null_stays_so() {
    let nulls = "ALTER TABLE shipments ALTER COLUMN order_id DROP NOT NULL";
    let same = ("new_order_id IS NOT NULL AND new_order_id = order_id", "new_order_id IS NOT DISTINCT FROM order_id");
    let run = SectionRun::on(same, &format!("{TABLES}; {nulls}"));
    check(run.also(("ALTER TABLE shipments ALTER COLUMN new_order_id SET NOT NULL;", ""))).unwrap();
    assert_caught(check(SectionRun::on(AS_WRITTEN, &format!("{TABLES}; {nulls}"))).map(drop), "not every column");
}
