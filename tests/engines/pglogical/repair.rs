//! Two of three nodes have the same worker ID. Their guards stop the replication between them, and then they are repaired.

use cluster::{Answer, assert_caught, ensure, within};

use crate::pglogical::nodes::{NodeRow, Nodes, PATIENCE, section};
use crate::pglogical::twins::{guard, insert_together, start};

/// When `db2` got the wrong worker ID, as the page says.
const SINCE: &str = "2026-11-22 20:00:00+00";

/// Three nodes insert rows before and after one of them gets the worker ID of another one. Returns the rows of each node.
fn stopped(test: &'static str) -> (Nodes, String, Vec<Vec<NodeRow>>) {
    let mut nodes = start(test, &["1", "3", "2"]);
    for node in 0..3 {
        nodes.describe(node);
        guard(&nodes, node);
    }
    nodes.subscribe(3);
    let mut rows = insert_together(&nodes);
    let mut all = rows.concat();
    all.sort();
    nodes.check_rows(&all).unwrap();
    // The IDs of these rows are up to eight seconds ahead of the clock.
    let since = nodes.connect(0).one("SELECT (snowflake_timestamp(max(id)) + interval '1 s')::text FROM orders");
    nodes.restart_with(1, "snowflake_pg.worker_id", "1");
    for node in 0..3 {
        nodes.wait_for_subscriptions(node, 2);
    }
    let twice = insert_together(&nodes);
    assert!(twice[0].iter().any(|(id, _)| twice[1].iter().any(|(other, _)| id == other)), "no ID comes twice");
    rows.iter_mut().zip(twice).for_each(|(rows, more)| rows.extend(more));
    for node in 0..2 {
        let refused = || nodes.connect(node).one::<i64>("SELECT guard_refusals FROM snowflake_status") > 0;
        assert!(within(PATIENCE, refused), "{}", nodes.servers[node].log());
    }
    (nodes, since, rows)
}

/// Follows the page. Returns the rows that all nodes must have.
fn repair(nodes: &mut Nodes, since: &str, mut rows: Vec<Vec<NodeRow>>) -> Vec<NodeRow> {
    let mut steps = section("Repair two nodes that have the same worker ID");
    let find = steps.block("sql every");
    let worker = |node: usize, worker: u32| {
        nodes.check(node, &find, &format!("worker_id | datacenter_id\n{worker} | 0\n(1 row)"));
    };
    worker(0, 1);
    worker(1, 1);
    worker(2, 2);
    nodes.psql(1, &steps.block("sql db2"));
    nodes.psql(0, &steps.block("sql db1"));
    let block = steps.block("conf db2");
    let (name, value) = cluster::settings(&block).next().expect("a setting");
    nodes.restart_with(1, name, value);
    let renumber = steps.block("sql db2");
    assert!(renumber.contains(SINCE), "{renumber}");
    nodes.psql(1, &renumber.replace(SINCE, since));
    let renumbered = nodes.connect(1).query("SELECT old_id, new_id FROM orders_renumbered", &[]).unwrap();
    let wrong = rows[1].iter().filter(|(id, _)| id >> 4 & 0xfff_ffff == 1).count();
    assert_eq!(renumbered.len(), wrong);
    for row in &renumbered {
        let (old, new): (i64, i64) = (row.get(0), row.get(1));
        rows[1].iter_mut().find(|(id, _)| *id == old).expect("a row of this node").0 = new;
    }
    nodes.psql(0, &steps.block("sql db1"));
    nodes.psql(1, &steps.block("sql db2"));
    nodes.psql(0, &steps.block("sql db1"));
    rows.iter_mut().for_each(|rows| rows.sort());
    let lacks =
        |node: usize| nodes.check_node(node, &rows[0]).expect_err("other rows").contains("committed rows are not on");
    // Nobody has told db3 that the two nodes had the same worker ID.
    assert!(within(PATIENCE, || !lacks(1)) && lacks(2), "db3 lacks no row of db1");
    nodes.shell(&steps.block("sh copy").replace(SINCE, since));
    let drop = steps.block("sql every");
    for node in [0, 2] {
        nodes.psql(node, &drop);
    }
    assert!(steps.is_empty());
    let mut all = rows.concat();
    all.sort();
    all
}

#[test]
fn after_the_repair_all_rows_of_both_nodes_are_on_all_nodes() {
    let (mut nodes, since, rows) = stopped("repaired");
    let mut all = repair(&mut nodes, &since, rows);
    nodes.check_rows(&all).unwrap();
    // Replication goes on in all directions.
    all.extend(insert_together(&nodes).concat());
    all.sort();
    nodes.check_rows(&all).unwrap();
}

/// The worker ID of a node is changed while its subscription is enabled, so that the refused rows arrive before the node's own rows
/// have other IDs.
fn check_hasty() -> Result<(), String> {
    let (mut nodes, _, rows) = stopped("hasty");
    nodes.restart_with(1, "snowflake_pg.worker_id", "4");
    let last = &rows[0].last().expect("rows").0;
    let arrived = format!("SELECT EXISTS (SELECT FROM orders WHERE id = {last} AND customer = 'db1')");
    let arrived = within(PATIENCE, || nodes.connect(1).one(&arrived));
    ensure!(arrived, "the refused rows do not arrive: {}", nodes.servers[1].log());
    let own = nodes.connect(1).one::<i64>("SELECT count(*) FROM orders WHERE customer = 'db2'");
    ensure!(own == rows[1].len() as i64, "{} committed rows of db2 are replaced", rows[1].len() as i64 - own);
    Ok(())
}

#[test]
fn a_worker_id_that_is_changed_while_the_subscription_is_enabled_is_caught() {
    assert_caught(check_hasty(), "committed rows of db2 are replaced");
}
