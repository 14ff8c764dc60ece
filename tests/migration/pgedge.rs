//! From pgEdge's snowflake, with its layout or with another.

use cluster::{Answer, assert_caught, ensure};

use crate::page::{AS_WRITTEN, Edit, Run, builder, sections};
use crate::{check_order, write};

/// What pgEdge's `snowflake.nextval` does on node 1, in an extension that can be dropped; `id` says where node and counter go.
/// Its sequence is `ahead` of the clock.
fn pgedge(id: &str, ahead: &str) -> String {
    format!(
        "CREATE SCHEMA snowflake; CREATE SEQUENCE snowflake.id_seq;
         CREATE FUNCTION snowflake.nextval(seq regclass DEFAULT 'snowflake.id_seq') RETURNS bigint LANGUAGE plpgsql AS $$
         DECLARE ms bigint := extract(epoch FROM clock_timestamp() - '2023-01-01Z') * 1000; last bigint; node bigint := 1;
         BEGIN
             EXECUTE format('SELECT last_value FROM %s', seq) INTO last;
             RETURN setval(seq, greatest(ms, (last >> 22) + 1) << 22 | ({id}));
         END $$;
         INSERT INTO pg_extension VALUES (99999, 'snowflake', 10, 'snowflake'::regnamespace, false, '2.4');
         ALTER EXTENSION snowflake ADD FUNCTION snowflake.nextval;
         ALTER EXTENSION snowflake ADD SEQUENCE snowflake.id_seq;
         CREATE SEQUENCE orders_id_seq;
         CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake.nextval('orders_id_seq'));
         CREATE TABLE invoices (id bigint PRIMARY KEY DEFAULT snowflake.nextval());
         SELECT setval('orders_id_seq', (extract(epoch FROM now() + '{ahead}' - '2023-01-01Z') * 1000)::bigint << 22)"
    )
}

const NODE_LOWEST: &str = "node";
pub const NODE_ABOVE: &str = "node << 12";
pub const PGEDGE: &str = "From pgEdge's snowflake";

/// New IDs come after every old one, in rows or only in a sequence, though that is ahead of the clock; all are of this node.
pub fn check_pgedge(id: &str, edit: Edit) -> Result<usize, String> {
    let server = builder().unset("shared_preload_libraries").unset("snowflake_pg.worker_id").start();
    let mut run = Run::of(server, edit);
    run.server.connect().batch_execute(&pgedge(id, "1 hour")).expect("tables can be made");
    let mut ids = Vec::new();
    run.section(PGEDGE, |session, next| {
        write(session, &mut ids, "INSERT INTO orders DEFAULT VALUES RETURNING id")?;
        if next.contains("snowflake_set_mark") {
            ids.extend(session.all::<i64>("SELECT snowflake.nextval('orders_id_seq') FROM generate_series(1, 5)"));
        }
        Ok(())
    })?;
    check_order(&ids)?;
    let other: i64 = run.server.connect().one("SELECT count(*) FROM orders, snowflake_decode(id) WHERE worker_id <> 1");
    ensure!(other == 0, "{other} IDs are read as another node's");
    Ok(run.blocks)
}

/// The settings of the one section, in the place of those of the other.
pub fn check_node_lowest() -> Result<usize, String> {
    let settings = |title: &str| {
        let section = sections().into_iter().find(|section| section.title == title).expect("a section of the page");
        let (_, text) = section.blocks.into_iter().find(|(language, _)| language == "conf").expect("settings");
        &*text.leak()
    };
    let edit = (settings(PGEDGE), settings("IDs with the node lowest"));
    check_pgedge(NODE_LOWEST, edit).map(|_| 1)
}

#[test]
fn a_mark_that_is_not_set_is_caught() {
    let edit = ("SELECT snowflake_set_mark(max(id) + 1)", "SELECT max(id)");
    assert_caught(check_pgedge(NODE_ABOVE, edit).map(drop), "an ID sorts before an old one");
}

#[test]
fn a_mark_that_does_not_know_the_sequences_is_caught() {
    let edit = ("UNION ALL SELECT last_value FROM orders_id_seq", "");
    assert_caught(check_pgedge(NODE_ABOVE, edit).map(drop), "an ID sorts before an old one");
}

#[test]
fn the_other_layout_of_pgedge_is_caught() {
    assert_caught(check_pgedge(NODE_LOWEST, AS_WRITTEN).map(drop), "read as another node's");
}

pub fn check_default_layout(ahead: &str) -> Result<usize, String> {
    let mut run = Run::on(AS_WRITTEN, &pgedge(NODE_ABOVE, ahead));
    let mut ids = Vec::new();
    let order = "INSERT INTO orders DEFAULT VALUES RETURNING id";
    run.section("The default layout instead", |session, _| write(session, &mut ids, order))?;
    check_order(&ids)?;
    let between: bool = run.server.connect().one(
        "SELECT id BETWEEN snowflake_min_id(now() + '12 years 56 days', 'pgedge')
                       AND snowflake_max_id(now() + '12 years 58 days', 'pgedge') FROM snowflake_nextval() AS id",
    );
    let example = "SELECT created_at = '2024-01-11 13:08:59.845-05' AND worker_id = 1 AND sequence = 0
         FROM snowflake_decode(136169504773242881, '41:12s:10', '2023-01-01Z')";
    ensure!(run.server.connect().one::<bool>(example), "pgEdge's example is read otherwise");
    ensure!(between, "a new ID is not 12 years and 57 days above pgEdge's");
    Ok(run.blocks)
}

#[test]
fn an_old_sequence_13_years_ahead_is_caught() {
    assert_caught(check_default_layout("13 years").map(drop), "an ID sorts before an old one");
}
