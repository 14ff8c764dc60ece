//! From pgEdge's snowflake, with its layout or with a different layout.

use cluster::{Answer, Client, assert_caught, block_with, blocks, ensure};

use crate::migration::page::{AS_WRITTEN, Edit, SectionRun, builder, page, section};
use crate::migration::{assert_caught_edit, check_order, write};

/// The order of the node and the counter below the time in one of pgEdge's IDs.
#[derive(Clone, Copy)]
pub struct Order {
    /// The expression that joins the node and the counter.
    join: &'static str,
    /// The expression for the counter of the ID `last`.
    counter: &'static str,
    /// The column of the page's query that shows the node.
    shown: usize,
}

/// The order in pgEdge's source.
pub const NODE_ABOVE: Order = Order { join: "node << 12 | counter", counter: "last & 4095", shown: 0 };
/// The order in the examples in pgEdge's folder `docs`.
const NODE_LOWEST: Order = Order { join: "counter << 10 | node", counter: "last >> 10 & 4095", shown: 1 };
pub const PGEDGE: &str = "From pgEdge's snowflake";
pub const LOWEST: &str = "If the node is in the lowest bits";
pub const DEFAULT: &str = "Use the default layout instead";

/// Returns the statements that create a function like pgEdge's `snowflake.nextval` on node 1, in an extension that can be
/// dropped. The counter begins at 0 when the clock has ticked, and continues in the next millisecond when it is full. The
/// sequence of orders is `ahead` of the clock.
fn pgedge(order: Order, ahead: &str) -> String {
    let Order { join, counter, .. } = order;
    format!(
        "CREATE SCHEMA snowflake; CREATE SEQUENCE snowflake.id_seq;
         CREATE FUNCTION snowflake.nextval(seq regclass DEFAULT 'snowflake.id_seq') RETURNS bigint LANGUAGE plpgsql AS $$
         DECLARE
             ms bigint := extract(epoch FROM clock_timestamp() - '2023-01-01Z') * 1000;
             last bigint; node bigint := 1; counter bigint := 0;
         BEGIN
             EXECUTE format('SELECT last_value FROM %s', seq) INTO last;
             IF ms <= last >> 22 THEN
                 ms := last >> 22; counter := ({counter}) + 1;
                 IF counter > 4095 THEN ms := ms + 1; counter := 0; END IF;
             END IF;
             RETURN setval(seq, ms << 22 | ({join}));
         END $$;
         INSERT INTO pg_extension VALUES (99999, 'snowflake', 10, 'snowflake'::regnamespace, false, '2.4');
         ALTER EXTENSION snowflake ADD FUNCTION snowflake.nextval;
         ALTER EXTENSION snowflake ADD SEQUENCE snowflake.id_seq;
         CREATE SEQUENCE orders_id_seq;
         CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake.nextval('orders_id_seq'),
             at timestamptz NOT NULL DEFAULT clock_timestamp());
         CREATE TABLE invoices (LIKE orders INCLUDING ALL);
         ALTER TABLE invoices ALTER COLUMN id SET DEFAULT snowflake.nextval();
         SELECT setval('orders_id_seq',
             ((extract(epoch FROM now() + '{ahead}' - '2023-01-01Z') * 1000)::bigint << 22) - 1);
         INSERT INTO orders (at) SELECT clock_timestamp() FROM generate_series(1, 10000);
         INSERT INTO invoices (at) SELECT clock_timestamp() FROM generate_series(1, 100)"
    )
}

/// Inserts a row into both tables, and returns the ID of the order.
const WRITE: &str =
    "WITH invoice AS (INSERT INTO invoices DEFAULT VALUES) INSERT INTO orders DEFAULT VALUES RETURNING id";

/// Checks that new IDs sort after every old ID, in a row or only in a sequence, although the old sequence is ahead of the clock.
/// All IDs decode to this node and to the time of their row, and old IDs decode to their counters.
pub fn check_pgedge(order: Order, edit: Edit) -> Result<usize, String> {
    check_with("", order, edit)
}

fn check_with(more: &str, order: Order, edit: Edit) -> Result<usize, String> {
    let server = builder().unset("shared_preload_libraries").unset("snowflake_pg.worker_id").start();
    let mut run = SectionRun::of(server, edit);
    run.server.connect().batch_execute(&format!("{}; {more}", pgedge(order, "1 hour"))).expect("tables can be made");
    let (mut ids, mut last_old) = (Vec::new(), 0);
    run.section(PGEDGE, |session, next| {
        write(session, &mut ids, WRITE)?;
        if next.contains("node_above_counter") {
            let shown = shown(session, next);
            ensure!(shown.iter().all(|nodes| nodes[order.shown] == 1), "the node is not where it should be: {shown:?}");
            ensure!(shown.iter().any(|nodes| nodes[1 - order.shown] != 1), "the node is in both: {shown:?}");
        }
        if next.contains("snowflake_set_mark") {
            last_old = ids[ids.len() - 1];
            // The sequence is moved further ahead than the time that the machine may take until the first new ID.
            let burst = "SELECT setval('orders_id_seq', last_value + (20000::bigint << 22)) FROM orders_id_seq";
            session.batch_execute(burst).expect("a superuser may");
            ids.extend(session.all::<i64>("SELECT snowflake.nextval('orders_id_seq') FROM generate_series(1, 5)"));
        }
        Ok(())
    })?;
    check_order(&ids)?;
    let mut session = run.server.connect();
    let other: i64 = session.one(
        "SELECT count(*) FROM (TABLE orders UNION ALL TABLE invoices) AS ids, snowflake_decode(id) WHERE worker_id <> 1",
    );
    ensure!(other == 0, "{other} IDs are read as another node's");
    // Old invoices came from a sequence that was not ahead of the clock. New invoices are above the mark, which is ahead of it.
    let early: i64 = session.one(
        "SELECT count(*) FROM (SELECT extract(epoch FROM snowflake_timestamp(id) - at) AS lead, false AS old_invoice FROM orders
             UNION ALL SELECT extract(epoch FROM snowflake_timestamp(id) - at), id < (SELECT min(id) FROM orders) FROM invoices) AS ids
         WHERE abs(lead - CASE WHEN old_invoice THEN 0 ELSE 3600 END) > 60",
    );
    ensure!(early == 0, "{early} IDs decode to another time");
    let counters: Vec<i64> = session.all(&format!(
        "SELECT count(*) FROM (SELECT sequence, row_number() OVER (PARTITION BY created_at ORDER BY id) - 1 AS n
             FROM orders, snowflake_decode(id) WHERE id <= {last_old}) AS old
         GROUP BY sequence = n ORDER BY sequence = n"
    ));
    ensure!(
        counters.len() == 1 && counters[0] > 10_000,
        "{counters:?} old IDs decode to another counter, and to theirs"
    );
    Ok(run.blocks)
}

/// Returns the columns of the page's query: the node if it is above the counter, and the node if it is in the lowest bits.
fn shown(session: &mut Client, query: &str) -> Vec<[i64; 2]> {
    let rows = session.query(query, &[]).expect("the page's query");
    rows.iter().map(|row| [row.get("node_above_counter"), row.get("node_lowest")]).collect()
}

/// Replaces the settings of the first section with the settings of the second section.
pub fn check_node_lowest() -> Result<usize, String> {
    let settings =
        |title: &str| section(title).blocks.into_iter().find(|(language, _)| language == "conf").expect("settings").1;
    let (usual, others) = (settings(PGEDGE), settings(LOWEST));
    check_pgedge(NODE_LOWEST, (&usual, &others)).map(|_| 1)
}

/// A mark that is not set or does not know the sequences, settings that only almost describe pgEdge's IDs, and a sequence that is
/// too far ahead for the default layout.
#[test]
fn another_mark_or_another_layout_is_caught() {
    let caught = |edit: Edit, reason: &str| assert_caught_edit(|edit| check_pgedge(NODE_ABOVE, edit), edit, reason);
    caught(("SELECT snowflake_set_mark(max(id) + 1)", "SELECT max(id)"), "an ID sorts before an old one");
    let sequences = "UNION ALL SELECT max(last_value + increment_by - 1) FROM pg_sequences";
    caught((sequences, ""), "an ID sorts before an old one");
    let layout = "snowflake_pg.layout = 'pgedge'";
    caught((layout, "snowflake_pg.layout = '41:10:12'"), "IDs decode to another time");
    let bits = "snowflake_pg.layout = '41:8:14'\nsnowflake_pg.epoch = '2023-01-01T00:00:00Z'";
    caught((layout, bits), "read as another node's");
    assert_caught(check_pgedge(NODE_LOWEST, AS_WRITTEN).map(drop), "read as another node's");
    assert_caught(check_default_layout("13 years").map(drop), "an ID sorts before an old one");
}

#[test]
fn a_sequence_that_is_far_ahead_is_left_out_by_its_name() {
    let far = "CREATE SEQUENCE far; SELECT setval('far', 1::bigint << 62)";
    assert_caught(check_with(far, NODE_ABOVE, AS_WRITTEN).map(drop), "more than a day ahead of the clock");
    let edit = ("FROM pg_sequences", "FROM pg_sequences WHERE sequencename <> 'far'");
    check_with(far, NODE_ABOVE, edit).unwrap();
}

/// In the third order, the node is above the time.
#[test]
fn ids_of_the_early_order_show_their_node_in_neither_column_and_decode_to_a_wrong_time() {
    let server = builder().start();
    let mut session = server.session();
    session
        .batch_execute(
            "CREATE TABLE orders AS SELECT 7::bigint << 54
                 | (extract(epoch FROM timestamptz '2023-06-01Z' - '2023-01-01Z') * 1000)::bigint + n << 12 | n % 3 AS id
             FROM generate_series(1, 20000) AS n",
        )
        .expect("a table");
    let query = block_with(blocks(&page(), "sql"), "AS node_lowest");
    let shown = shown(&mut session, &query);
    assert!(shown.iter().flatten().filter(|node| **node == 7).count() < 2, "{shown:?}");
    for layout in ["'pgedge'", "'41:12s:10', '2023-01-01Z'"] {
        let near = format!(
            "SELECT count(*) FROM orders WHERE abs(extract(epoch FROM snowflake_timestamp(id, {layout}) - '2023-06-01Z')) < 86400"
        );
        assert_eq!(session.one::<i64>(&near), 0, "{layout}");
    }
}

pub fn check_default_layout(ahead: &str) -> Result<usize, String> {
    let mut run = SectionRun::on(AS_WRITTEN, &pgedge(NODE_ABOVE, ahead));
    let mut ids = Vec::new();
    run.section(DEFAULT, |session, _| write(session, &mut ids, WRITE))?;
    check_order(&ids)?;
    let mut session = run.server.connect();
    let other: i64 = session.one(
        "SELECT count(*) FROM orders WHERE abs(extract(epoch FROM at
             - CASE WHEN id >= snowflake_min_id('2024-01-01 00:00+00') THEN snowflake_timestamp(id)
                    ELSE snowflake_timestamp(id, 'pgedge') END)) > 60",
    );
    ensure!(other == 0, "{other} IDs decode to another time");
    let between: bool = session.one(
        "SELECT id BETWEEN snowflake_min_id(now() + '12 years 56 days', 'pgedge')
                       AND snowflake_max_id(now() + '12 years 58 days', 'pgedge') FROM snowflake_nextval() AS id",
    );
    let example = "SELECT created_at = '2024-01-11 13:08:59.845-05' AND worker_id = 1 AND sequence = 0
         FROM snowflake_decode(136169504773242881, '41:12s:10', '2023-01-01Z')";
    ensure!(session.one::<bool>(example), "pgEdge's example is read otherwise");
    ensure!(between, "a new ID is not 12 years and 57 days above pgEdge's");
    Ok(run.blocks)
}
