//! Rows that return to the node that inserted them: in a loop of subscriptions, and in a copy of the table.

use cluster::{Answer, assert_caught, ensure, within};

use crate::pglogical::nodes::{Nodes, PATIENCE};
use crate::pglogical::twins::{guard, start};

fn refusals(nodes: &Nodes, node: usize) -> i64 {
    nodes.connect(node).one("SELECT guard_refusals FROM snowflake_status")
}

/// Two nodes with guards subscribe to each other, and forward these rows.
fn check_forwarded(test: &'static str, forward_origins: &str) -> Result<(), String> {
    let nodes = start(test, &["1", "2"]);
    for node in 0..2 {
        nodes.describe(node);
        guard(&nodes, node);
    }
    nodes.subscribe_forwarding(2, forward_origins);
    let mut rows = nodes.insert(0, 1);
    nodes.settle_from(0);
    nodes.check_node(1, &rows)?;
    rows.extend(nodes.insert(1, 1));
    rows.sort();
    let ended = || refusals(&nodes, 0) > 0 || nodes.check_node(0, &rows).is_ok();
    ensure!(within(PATIENCE, ended), "{}", nodes.servers[0].log());
    ensure!(refusals(&nodes, 0) == 0, "a row that returns is refused");
    Ok(())
}

#[test]
fn rows_that_are_not_forwarded_do_not_return() {
    check_forwarded("not_forwarded", "{}").unwrap();
}

#[test]
fn rows_that_are_forwarded_to_their_node_are_caught() {
    assert_caught(check_forwarded("forwarded", "{all}"), "a row that returns is refused");
}

/// A node copies a table again, and the copy contains its own rows. `disabled` says whether the guard is disabled during this.
fn check_copied(test: &'static str, disabled: bool) -> Result<(), String> {
    let nodes = start(test, &["1", "2"]);
    for node in 0..2 {
        nodes.describe(node);
        guard(&nodes, node);
    }
    nodes.subscribe(2);
    let mut rows = [nodes.insert(0, 10), nodes.insert(1, 10)].concat();
    rows.sort();
    nodes.check_rows(&rows)?;
    if disabled {
        nodes.psql(0, "ALTER TABLE orders DISABLE TRIGGER snowflake_guard");
    }
    nodes.psql(0, "SELECT pglogical.alter_subscription_resynchronize_table('db1_from_db2', 'orders')");
    // The table was not empty before, so that its rows do not tell when the copy has ended.
    let copied = || nodes.servers[0].log().contains("finished sync of table public.orders");
    let ended = || refusals(&nodes, 0) > 0 || copied();
    ensure!(within(PATIENCE, ended), "{}", nodes.servers[0].log());
    ensure!(refusals(&nodes, 0) == 0, "the copy is refused");
    guard(&nodes, 0);
    nodes.check_rows(&rows)?;
    rows.extend(nodes.insert(0, 10));
    rows.extend(nodes.insert(1, 10));
    rows.sort();
    nodes.check_rows(&rows)
}

#[test]
fn a_table_is_copied_again_while_its_guard_is_disabled() {
    check_copied("copied", true).unwrap();
}

#[test]
fn a_table_that_is_copied_again_with_its_guard_is_caught() {
    assert_caught(check_copied("copied_guarded", false), "the copy is refused");
}
