//! Three nodes subscribe to each other, and insert rows at the same time.

use std::thread;
use std::time::Duration;

use cluster::{Answer, History, within};

use crate::pglogical::nodes::{NodeRow, Nodes, PATIENCE, inserted, section};
use crate::pglogical::twins::guard;

/// How long the nodes insert rows.
const WHILE: Duration = Duration::from_secs(2);

/// Ends the loads of the nodes, and returns the rows. Every session must have been able to insert rows.
fn finish(loads: Vec<(usize, cluster::Load)>, all: &mut History, rows: &mut Vec<NodeRow>) {
    for (node, load) in loads {
        let history = load.finish();
        assert!(history.errors.is_empty(), "{:?}", history.errors);
        assert!(history.len() > 10, "node {node} has inserted only {} rows", history.len());
        rows.extend(inserted(node, history.ids()));
        all.merge(history);
    }
}

/// Checks that each node has all rows, that none of them came twice, and that no guard has refused one.
fn check_at_the_end(nodes: &Nodes, mut rows: Vec<NodeRow>) {
    rows.sort();
    nodes.check_rows(&rows).unwrap();
    for server in &nodes.servers {
        assert!(!server.log().contains("CONFLICT"), "{}", server.log());
        assert_eq!(server.connect().one::<i64>("SELECT guard_refusals FROM snowflake_status"), 0);
    }
}

#[test]
fn nodes_with_a_registry_insert_at_the_same_time_and_each_row_arrives_at_each_node() {
    let mut nodes = Nodes::new("registry");
    nodes.start_registry();
    let mut setup = section("Set up three nodes");
    let settings = setup.block("conf registry");
    for node in 0..3 {
        nodes.start(&settings, |builder| builder);
        let worker = "SELECT current_setting('snowflake_pg.worker_id')";
        let mut client = nodes.servers[node].connect();
        let assigned = within(PATIENCE, || client.one::<String>(worker) == node.to_string());
        assert!(assigned, "{}", nodes.servers[node].log());
        nodes.describe(node);
        guard(&nodes, node);
    }
    nodes.subscribe(3);
    let [_, _, _, _, _, status, shown, count, counted] =
        setup.rest(["sql every", "sql db1", "sql db1", "sql db2", "sql db3", "sql db1", "text", "sql db1", "text"]);
    nodes.check(0, &status, &shown);
    let mut rows = Vec::new();
    for node in 0..3 {
        rows.extend(nodes.insert(node, 100));
    }
    nodes.check(0, &count, &counted);

    let [create, add] = section("Create further tables").rest(["sql db1", "sql every"]);
    let unqualified = create.replace("public.", "");
    let error = nodes.try_psql(0, &unqualified).expect_err("nothing is in search_path");
    assert!(error.contains("no schema has been selected"), "{error}");
    let unqualified = create.replace("public.snowflake", "snowflake");
    let error = nodes.try_psql(0, &unqualified).expect_err("the function is not in search_path");
    assert!(error.contains("function snowflake_nextval() does not exist"), "{error}");
    nodes.psql(0, &create);
    for node in 0..3 {
        let created = || nodes.servers[node].connect().one::<bool>("SELECT to_regclass('invoices') IS NOT NULL");
        assert!(within(PATIENCE, created), "{}", nodes.servers[node].log());
        nodes.psql(node, &add);
    }
    for server in &nodes.servers {
        server.connect().batch_execute("INSERT INTO invoices (amount) SELECT 1 FROM generate_series(1, 100)").unwrap();
    }

    let loads = (0..3).map(|node| (node, nodes.load(node))).collect();
    thread::sleep(WHILE);
    let mut history = History::default();
    finish(loads, &mut history, &mut rows);
    history.check(100).unwrap();
    check_at_the_end(&nodes, rows);
    for server in &nodes.servers {
        assert_eq!(server.connect().one::<i64>("SELECT count(*) FROM invoices"), 300);
    }
}

#[test]
fn a_node_is_added_while_another_node_inserts() {
    let mut nodes = Nodes::new("added");
    let [settings] = section("Without a registry").rest(["conf configured"]);
    let worker = |node: usize| settings.replace("worker_id = '1'", &format!("worker_id = '{}'", node + 1));
    for node in 0..2 {
        nodes.start(&worker(node), |builder| builder);
        nodes.describe(node);
        guard(&nodes, node);
    }
    nodes.subscribe(2);
    let (mut history, mut rows) = (History::default(), Vec::new());
    let always = nodes.load(0);
    let before = nodes.load(1);
    thread::sleep(WHILE / 2);

    nodes.start(&worker(2), |builder| builder);
    nodes.describe(2);
    guard(&nodes, 2);
    let [db1, db2, then, db3] = section("Add a node").rest(["sql db1", "sql db2", "sql db2", "sql db3"]);
    nodes.psql(0, &db1);
    nodes.psql(1, &db2);
    finish(vec![(1, before)], &mut history, &mut rows);
    nodes.psql(1, &then);
    nodes.psql(2, &db3);
    let after = (1..3).map(|node| (node, nodes.load(node))).collect();
    thread::sleep(WHILE);
    finish(after, &mut history, &mut rows);
    finish(vec![(0, always)], &mut history, &mut rows);
    history.check(100).unwrap();
    check_at_the_end(&nodes, rows);
}
