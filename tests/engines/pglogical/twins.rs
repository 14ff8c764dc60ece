//! Two nodes that have the same worker ID, with and without guards.

use cluster::{Answer, SPARSE_BELOW_TIME, SPARSE_LAYOUT, SPARSE_PER_SECOND, assert_caught, ensure, within};

use crate::pglogical::nodes::{NodeRow, Nodes, PATIENCE, insert, section};

/// The ways in which pglogical resolves conflicts without stopping.
const RESOLUTIONS: [&str; 3] = ["apply_remote", "keep_local", "last_update_wins"];

/// Starts nodes with these worker IDs. A node issues the IDs of eight seconds at once, so that the IDs of nodes that insert rows one
/// after the other are of the same seconds.
pub fn start(test: &'static str, workers: &[&str]) -> Nodes {
    let mut nodes = Nodes::new(test);
    let settings = section("Without a registry").block("conf configured");
    for worker in workers {
        let settings = settings.replace("worker_id = '1'", &format!("worker_id = '{worker}'"));
        let more = [
            ("snowflake_pg.layout", SPARSE_LAYOUT),
            ("snowflake_pg.max_ahead", "10s"),
            ("track_commit_timestamp", "on"),
            ("max_worker_processes", "40"),
        ];
        nodes.start(&settings, |builder| more.iter().fold(builder, |builder, (name, value)| builder.set(name, value)));
    }
    nodes
}

/// Inserts rows on each node, and commits them when all of them are inserted. Two nodes with one worker ID have issued the same IDs
/// then. Returns the rows of each node in order.
pub fn insert_together(nodes: &Nodes) -> Vec<Vec<NodeRow>> {
    let mut clients: Vec<_> = (0..nodes.servers.len()).map(|node| nodes.connect(node)).collect();
    let mut rows: Vec<Vec<NodeRow>> = Vec::new();
    for (node, client) in clients.iter_mut().enumerate() {
        client.batch_execute("BEGIN").unwrap();
        rows.push(insert(client, node, SPARSE_PER_SECOND * 8));
    }
    // A node that begins earlier goes on until it has issued the IDs of the node that begins last.
    let latest = rows.iter().flatten().map(|(id, _)| id >> SPARSE_BELOW_TIME).max();
    for (node, client) in clients.iter_mut().enumerate() {
        while rows[node].iter().map(|(id, _)| id >> SPARSE_BELOW_TIME).max() < latest {
            rows[node].extend(insert(client, node, SPARSE_PER_SECOND));
        }
    }
    clients.iter_mut().for_each(|client| client.batch_execute("COMMIT").unwrap());
    rows.iter_mut().for_each(|rows| rows.sort());
    rows
}

/// Gives the table of the page a guard on a node.
pub fn guard(nodes: &Nodes, node: usize) {
    nodes.psql(node, &section("The guard").block("sql every"));
}

/// Replicates a database for each resolution between two nodes with these worker IDs. Returns the rows that the nodes have inserted in
/// each database.
fn replicate(nodes: &mut Nodes, resolutions: &[&'static str], guarded: bool) -> Vec<Vec<Vec<NodeRow>>> {
    let mut rows = Vec::new();
    for resolution in resolutions {
        nodes.use_database("postgres");
        for node in 0..2 {
            nodes.psql(node, &format!("CREATE DATABASE {resolution}"));
            nodes.psql(node, &format!("ALTER DATABASE {resolution} SET pglogical.conflict_resolution = {resolution}"));
        }
        nodes.use_database(resolution);
        for node in 0..2 {
            nodes.describe(node);
            if guarded {
                guard(nodes, node);
            }
        }
        nodes.subscribe(2);
        rows.push(insert_together(nodes));
    }
    rows
}

#[test]
fn rows_of_two_worker_ids_never_replace_each_other() {
    let mut nodes = start("two_workers", &["1", "2"]);
    let mut rows = replicate(&mut nodes, &["apply_remote"], false).remove(0).concat();
    rows.sort();
    nodes.check_rows(&rows).unwrap();
}

/// Checks that no row that a node has inserted is lost on this node.
fn check_own_rows_stay(test: &'static str, guarded: bool) -> Result<(), String> {
    let mut nodes = start(test, &["1", "1"]);
    let rows = replicate(&mut nodes, &RESOLUTIONS, guarded);
    let (mut lost, mut missing) = (0, 0);
    for (resolution, rows) in RESOLUTIONS.iter().zip(&rows) {
        nodes.use_database(resolution);
        if guarded {
            for node in 0..2 {
                let status = "SELECT bool_and(status = 'down') FROM pglogical.show_subscription_status()";
                let mut client = nodes.connect(node);
                let stopped = within(PATIENCE, || client.one::<bool>(status));
                ensure!(stopped, "replication goes on:\n{}", nodes.servers[node].log());
            }
        } else {
            nodes.settle();
        }
        for node in 0..2 {
            let own = nodes.check_node(node, &rows[node]);
            lost += usize::from(own.is_err_and(|reason| reason.contains("committed rows are not on")));
            let mut all = rows.concat();
            all.sort();
            missing += usize::from(nodes.check_node(node, &all).is_err());
        }
    }
    check_shown(&nodes, guarded);
    ensure!(missing == 2 * RESOLUTIONS.len(), "rows with the same ID are on one node");
    ensure!(lost == 0, "committed rows are replaced in {lost} of {} databases", 2 * RESOLUTIONS.len());
    Ok(())
}

/// Checks what the page shows of a refusal, or of a row that is replaced.
fn check_shown(nodes: &Nodes, guarded: bool) {
    let title = if guarded { "The guard" } else { "What happens if two nodes have the same worker ID" };
    let mut shown = section(title);
    if guarded {
        shown.block("sql every");
        nodes.check(0, &shown.block("sql db1"), &shown.block("text"));
    }
    let line = shown.block("text log");
    for server in &nodes.servers {
        assert!(server.log().contains(line.trim()), "{}", server.log());
    }
    if guarded {
        nodes.check(0, &shown.block("sql db1"), &shown.block("text"));
    }
    assert!(shown.is_empty());
}

#[test]
fn guards_stop_the_replication_between_two_nodes_with_one_worker_id_before_a_row_is_lost() {
    check_own_rows_stay("guarded", true).unwrap();
}

#[test]
fn without_guards_two_nodes_with_one_worker_id_lose_rows_is_caught() {
    // Both nodes lose rows with `apply_remote`, and the node that commits first with `last_update_wins`. With `keep_local`, each node
    // keeps its own rows and ignores those of the other node.
    assert_caught(check_own_rows_stay("unguarded", false), "committed rows are replaced in 3 of 6 databases");
}
