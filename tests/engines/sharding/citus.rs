//! A coordinator and two nodes with shards, if Citus is installed: which node draws the ID in each statement of the page's table, and
//! what the page says does not work.

use std::collections::BTreeSet;
use std::io::Write;

use cluster::{
    Answer, Client, Cluster, Host, SPARSE_LAYOUT, assert_caught, check_unique, ensure, not_tested, page, settings,
};

use crate::sharding::page::{PAGE, ShardHosts, Workers, compare, section, shop};

/// The nodes. The first one is the coordinator.
const NODES: [&str; 3] = ["coordinator", "worker1", "worker2"];

/// How many rows the local table has. With a sparse layout, a node with half of them draws IDs for three seconds.
const NAMES: i64 = 96;

/// A Citus cluster with the tables of the page.
struct Citus {
    hosts: ShardHosts,
    nodes: Vec<Cluster>,
}

impl Citus {
    /// Starts the nodes. Returns `None` if Citus is not installed.
    fn start(test: &'static str, workers: Workers, layout: &str) -> Option<Citus> {
        if !Host::get().installation().libraries.join("citus.so").exists() {
            not_tested("Citus, which is not installed beside this PostgreSQL");
            return None;
        }
        let mut recipe = section("Citus");
        let block = recipe.block("conf citus");
        let hosts = ShardHosts::new(test, workers, layout);
        let node = |host: &&str| {
            hosts.start(host, |mut builder| {
                for (name, value) in
                    settings(&block).filter(|(name, _)| workers == Workers::Registry || !name.ends_with("registry"))
                {
                    builder = builder.set(name, &hosts.here(value));
                }
                builder
                    .set("snowflake_pg.layout", layout)
                    .set("snowflake_pg.max_ahead", "10s")
                    .set("citus.local_hostname", &socket(test, host))
                    .set("citus.node_conninfo", "sslmode=prefer")
                    .set("citus.shard_count", "8")
                    .set("max_worker_processes", "32")
                    .set("wal_level", "logical")
            })
        };
        let nodes: Vec<Cluster> = NODES.iter().map(node).collect();
        for node in &nodes {
            // The shards of a test are so small that the planner would read all of their rows.
            let create = "CREATE EXTENSION citus; ALTER DATABASE shop SET enable_seqscan = off";
            shop(node).batch_execute(create).expect("Citus is installed");
        }
        let [coordinator, first, second] = NODES.map(|host| socket(test, host));
        let add = format!(
            "SELECT citus_set_coordinator_host('{coordinator}');
             SELECT citus_add_node('{first}', 5432); SELECT citus_add_node('{second}', 5432)"
        );
        shop(&nodes[0]).batch_execute(&add).expect("nodes");
        let citus = Citus { hosts, nodes };
        citus.nodes.iter().for_each(Cluster::wait_for_ids);
        let [_, statements, shown] = recipe.rest(["text order", "sql coordinator", "text"]);
        let printed = citus.hosts.psql(&citus.nodes[0], &statements).unwrap();
        let last = &printed[printed.find(" different").expect("the last query")..];
        assert_eq!(compare(last, &shown).is_ok(), workers == Workers::Registry, "{last}");
        let fill = format!("INSERT INTO names SELECT 'name ' || n FROM generate_series(1, {NAMES}) AS n");
        citus.coordinator().batch_execute(&fill).expect("a local table");
        Some(citus)
    }

    fn coordinator(&self) -> Client {
        shop(&self.nodes[0])
    }

    /// The worker ID of each node.
    fn workers(&self) -> [i64; 3] {
        let worker =
            |node: &Cluster| node.connect().one::<String>("SHOW snowflake_pg.worker_id").parse().expect("a number");
        [0, 1, 2].map(|node| worker(&self.nodes[node]))
    }
}

/// The directory of a node's socket, which is the name of the node for Citus.
fn socket(test: &str, host: &str) -> String {
    Host::get().socket_dir(&format!("sharding_{test}_{host}")).display().to_string()
}

/// Returns the cells of the tables in a section of the page.
fn table(title: &str) -> Vec<Vec<String>> {
    let page = page(PAGE);
    let lines = page.lines().skip_while(|line| line.trim_start_matches('#').trim() != title).skip(1);
    let rows = lines.take_while(|line| !line.starts_with('#')).filter(|line| line.starts_with("| `"));
    let rows: Vec<Vec<String>> =
        rows.map(|row| row.trim_matches('|').split(" | ").map(|cell| cell.trim().to_string()).collect()).collect();
    assert!(rows.len() > 5 && rows.iter().all(|cells| cells.len() == 3), "{title}: {rows:?}");
    rows
}

/// The pieces of code in a cell.
fn code(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// Runs a statement, and returns the IDs that it has drawn.
fn drawn(session: &mut Client, statement: &str) -> Vec<i64> {
    let word = |after: &str| statement.split_once(after).and_then(|(_, rest)| rest.split(' ').next());
    let stored = if statement.contains("ADD COLUMN") {
        "SELECT number FROM orders".to_string()
    } else if let Some(table) = word("INTO ").or(word("COPY ")).or(word("CREATE TABLE ")) {
        format!("SELECT id FROM {table}")
    } else {
        "SELECT id FROM items".to_string()
    };
    if statement.starts_with("SELECT snowflake") || statement.starts_with("WITH") {
        return session.all(statement);
    }
    let creates = statement.starts_with("CREATE") || statement.starts_with("ALTER");
    let before: BTreeSet<i64> = if creates { BTreeSet::new() } else { session.all(&stored).into_iter().collect() };
    if statement.starts_with("COPY") {
        let mut rows = session.copy_in(statement).expect(statement);
        rows.write_all(b"Alan\nGrace\n").and_then(|()| rows.flush()).expect("rows");
        rows.finish().expect("rows");
    } else {
        session.run(statement);
    }
    session.all::<i64>(&stored).into_iter().filter(|id| !before.contains(id)).collect()
}

fn workers_of(ids: &[i64]) -> BTreeSet<i64> {
    ids.iter().map(|id| id >> 12 & 1023).collect()
}

#[test]
fn each_statement_on_citus_draws_its_ids_where_the_page_says() {
    let Some(citus) = Citus::start("citus", Workers::Registry, "41:10:12") else { return };
    let [tables] = section("Which node draws the ID?").rest(["sql coordinator"]);
    citus.hosts.psql(&citus.nodes[0], &tables).unwrap();
    let [coordinator, first, second] = citus.workers();
    let mut session = citus.coordinator();
    let mut all = drawn(&mut session, "INSERT INTO orders (customer) SELECT customer FROM names");
    for cells in table("Which node draws the ID?") {
        let statement = code(&cells[0])[0];
        let ids = drawn(&mut session, statement);
        let workers = workers_of(&ids);
        let (receiving, shards) = (BTreeSet::from([coordinator]), BTreeSet::from([first, second]));
        match cells[1].split(" of `").next().expect("a text") {
            "the receiving node" => assert_eq!(workers, receiving, "{statement}"),
            "the nodes with the shards" => assert_eq!(workers, shards, "{statement}"),
            "the node with the shard" => {
                assert!(workers.len() == 1 && workers.is_subset(&shards), "{statement}: {workers:?}");
            }
            other => panic!("the table says {other:?}"),
        }
        all.extend(ids);
    }
    // A call that Citus delegates.
    let ids = session.all::<i64>("SELECT new_item('Ada')");
    assert!(workers_of(&ids).is_subset(&BTreeSet::from([first, second])), "{ids:?}");
    all.extend(ids);
    // A node with shards as the receiving node.
    let mut worker = shop(&citus.nodes[1]);
    for statement in
        ["INSERT INTO orders (customer) VALUES ('Ada'), ('Grace')", "INSERT INTO currencies (code) VALUES ('USD')"]
    {
        let ids = drawn(&mut worker, statement);
        assert_eq!(workers_of(&ids), BTreeSet::from([first]), "{statement}");
        all.extend(ids);
    }
    check_unique(&mut all).unwrap();
    check_limits(&citus);
    check_tables(&citus);
}

/// Checks the table of the page with what does not work.
fn check_limits(citus: &Citus) {
    let mut session = citus.coordinator();
    let prepare =
        "SELECT snowflake_create_series('invoice', 'INV-{YYYY}-{n:5}'); ALTER TABLE items ADD COLUMN serial text";
    session.batch_execute(prepare).expect("a series on the coordinator");
    for cells in table("What does not work with Citus?") {
        let (statements, expected) = (code(&cells[0]), code(&cells[1]));
        match statements[0] {
            "INSERT .. RETURNING snowflake_decode(id)" => {
                for function in statements.iter().map(|text| text.rsplit("RETURNING ").next().expect("a function")) {
                    let insert = format!("INSERT INTO items (customer) VALUES ('x') RETURNING {function}");
                    assert_eq!(session.refusal(&insert).1, expected[0], "{insert}");
                }
                let text = "INSERT INTO items (customer) VALUES ('x') RETURNING snowflake_to_text(id)";
                assert_eq!(session.code(text), None);
            }
            "SELECT snowflake_currval()" => {
                let older: i64 = session.one("INSERT INTO items (customer) VALUES ('x') RETURNING id");
                assert_eq!(session.one::<i64>("SELECT snowflake_currval()"), older);
                let new = drawn(&mut session, "INSERT INTO items (customer) SELECT customer FROM orders");
                assert!(!new.is_empty() && session.one::<i64>("SELECT snowflake_currval()") == older);
            }
            add if add.contains("ADD COLUMN") => {
                session.batch_execute(add).expect("no error");
                let values =
                    "SELECT count(DISTINCT result) FROM run_command_on_all_nodes('SELECT sum(number) FROM currencies')";
                assert!(session.one::<i64>(values) > 1, "the copies are equal");
            }
            statement => assert_eq!(session.refusal(statement).1, expected[0], "{statement}"),
        }
    }
    assert_eq!(session.code("INSERT INTO items (customer) VALUES (snowflake_serial('invoice'))"), None);
}

/// Checks queries, the check of a table, partitions and moves.
fn check_tables(citus: &Citus) {
    let mut session = citus.coordinator();
    let id: i64 = session.one("SELECT max(id) FROM orders");
    for (filter, tasks) in [
        (format!("id = {id}"), 1),
        (
            format!(
                "id = snowflake_from_text('{}')",
                session.one::<String>(&format!("SELECT snowflake_to_text({id})"))
            ),
            1,
        ),
        ("snowflake_between(id, now() - interval '1 hour', now() + interval '1 minute')".into(), 8),
    ] {
        let plan = session.plan(&format!("SELECT FROM orders WHERE {filter}"));
        assert!(plan.contains(&format!("Task Count: {tasks}\n")) && plan.contains("Index Cond"), "{plan}");
    }
    let [check, shown, partitions] =
        section("Query, check and partition distributed tables").rest(["sql check", "text", "sql partitions"]);
    citus.hosts.check(&citus.nodes[0], &check, &shown);
    let unexpected: i64 = session.one("SELECT count(*) FROM snowflake_check('items')");
    assert!(unexpected > 0, "the other worker IDs are expected");
    citus.hosts.psql(&citus.nodes[0], &partitions).unwrap();
    assert_eq!(session.code("INSERT INTO events (customer) SELECT customer FROM orders"), None);
    let range = "snowflake_between(id, now() - interval '1 hour', now() + interval '1 minute')";
    let plan = session.plan(&format!("SELECT FROM events WHERE {range}"));
    assert!(plan.contains("Subplans Removed"), "{plan}");

    let ids = |session: &mut Client| session.all::<i64>("SELECT id FROM orders ORDER BY id");
    let before = ids(&mut session);
    let move_shard = "SELECT citus_move_shard_placement(shardid, nodename, 5432, other, 5432, 'force_logical')
        FROM (SELECT s.shardid, s.nodename, n.nodename AS other FROM citus_shards AS s JOIN pg_dist_node AS n
              ON n.shouldhaveshards AND n.nodename <> s.nodename WHERE table_name = 'orders'::regclass ORDER BY shardid LIMIT 1) AS first";
    session.batch_execute(move_shard).expect("a shard can be moved");
    assert_eq!(ids(&mut session), before);
    session.batch_execute("SELECT undistribute_table('orders')").expect("a local table");
    assert_eq!(ids(&mut session), before);
}

/// Lets the nodes with the shards draw IDs at the same time.
fn check_nodes(citus: &Citus) -> Result<(), String> {
    let mut session = citus.coordinator();
    let rows = "INSERT INTO orders (customer) SELECT customer FROM names; INSERT INTO items (customer) SELECT customer FROM orders";
    session.batch_execute(rows).expect("rows");
    let mut ids = session.all::<i64>("SELECT id FROM items");
    ensure!(ids.len() as i64 == NAMES, "{} rows", ids.len());
    check_unique(&mut ids)
}

#[test]
fn nodes_with_one_worker_id_are_caught() {
    if let Some(citus) = Citus::start("citus_same", Workers::Same, SPARSE_LAYOUT) {
        assert_caught(check_nodes(&citus), "IDs came twice");
    }
}

#[test]
fn a_server_on_which_citus_is_not_the_first_library_does_not_start() {
    if !Host::get().installation().libraries.join("citus.so").exists() {
        return not_tested("Citus, which is not installed beside this PostgreSQL");
    }
    let mut recipe = section("Citus");
    recipe.block("conf citus");
    let mut server =
        Cluster::builder("sharding_citus_order").set("shared_preload_libraries", "snowflake_pg, citus").create();
    let log = server.try_start().expect_err("Citus is not the first library");
    assert!(log.contains(recipe.block("text order").trim()), "{log}");
}
