//! The sections of docs/pglogical.md, the nodes on which their blocks are typed, and the rows that the nodes have.

pub use cluster::PATIENCE;
use cluster::{
    Answer, Ask, Builder, Client, Cluster, Host, Load, Recipe, Stop, compare, ensure, succeeds_within, typed, within,
};

pub const PAGE: &str = "docs/pglogical.md";

/// The values that the page declares to be examples.
const NODES: [&str; 3] = ["db1", "db2", "db3"];
const REGISTRY: &str = "host=registry.example dbname=fleet user=fleet";

/// Returns the section of the page with this heading.
pub fn section(title: &str) -> Recipe {
    Recipe::of(PAGE, title)
}

/// A row: its ID, and the node that inserted it.
pub type NodeRow = (i64, String);

/// The servers of a test.
pub struct Nodes {
    test: &'static str,
    registry: Option<Cluster>,
    pub servers: Vec<Cluster>,
    /// The database that is replicated.
    database: String,
}

impl Nodes {
    /// Returns nodes that are not started yet.
    pub fn new(test: &'static str) -> Nodes {
        Nodes { test, registry: None, servers: Vec::new(), database: "postgres".into() }
    }

    /// Starts the registry.
    pub fn start_registry(&mut self) {
        self.registry = Some(Cluster::builder(&self.name("registry")).start_registry("41:10:12"));
    }

    /// Starts the next node with a block of settings, and with those that `like` adds.
    pub fn start(&mut self, block: &str, like: impl FnOnce(Builder) -> Builder) {
        let name = self.name(NODES[self.servers.len()]);
        let mut builder = Cluster::builder(&name).unset("shared_preload_libraries").unset("snowflake_pg.worker_id");
        for (name, value) in cluster::settings(block) {
            builder = builder.set(name, &self.here(value));
        }
        self.servers.push(like(builder).start());
    }

    /// Lets the test use another database on all nodes from now on.
    pub fn use_database(&mut self, database: &str) {
        self.database = database.into();
    }

    /// Connects to the database on a node.
    pub fn connect(&self, node: usize) -> Client {
        self.servers[node].connect_to(&self.database)
    }

    fn name(&self, host: &str) -> String {
        format!("pglogical_{}_{host}", self.test)
    }

    /// Returns a block as the test types it: with the sockets of the test.
    fn here(&self, text: &str) -> String {
        let socket = |host: &str| Host::get().socket_dir(&self.name(host)).display().to_string();
        let mut text = text.to_string();
        if text.contains(REGISTRY) {
            text = text.replace(REGISTRY, &format!("host={} dbname=postgres user=postgres", socket("registry")));
        }
        for node in NODES.iter().filter(|node| text.contains(&format!("host={node}"))).collect::<Vec<_>>() {
            text = text.replace(&format!("host={node}"), &format!("host={}", socket(node)));
        }
        text.replace(" dbname=postgres'", &format!(" dbname={}'", self.database))
    }

    /// Types a block into a shell. Each command of the block must succeed. Arguments that name a node become its socket.
    pub fn shell(&self, text: &str) {
        let mut text = self.here(text);
        for node in NODES {
            text =
                text.replace(&format!(" {node}"), &format!(" {}", Host::get().socket_dir(&self.name(node)).display()));
        }
        let shell = Host::get().shell(&format!("set -eu\n{text}"));
        typed(shell, "").unwrap_or_else(|error| panic!("{text}\n{error}"));
    }

    /// Types a block into psql on a node.
    pub fn try_psql(&self, node: usize, text: &str) -> Result<String, String> {
        let mut psql = self.servers[node].psql();
        psql.args(["-d", &self.database]);
        // Some functions of pglogical wait for ever if something is wrong.
        psql.env("PGOPTIONS", format!("-c statement_timeout={}", PATIENCE.as_millis()));
        typed(psql, &self.here(text))
    }

    /// Types a block into psql on a node. It must succeed.
    pub fn psql(&self, node: usize, text: &str) -> String {
        self.try_psql(node, text).unwrap_or_else(|error| panic!("{text}\n{error}\n{}", self.servers[node].log()))
    }

    /// Types a block into psql on a node until it prints what the page shows.
    pub fn check(&self, node: usize, text: &str, shown: &str) {
        let check = || compare(&self.psql(node, text), shown, str::to_string);
        succeeds_within(PATIENCE, check).unwrap_or_else(|reason| panic!("{text}\n{reason}"));
    }

    /// Creates the table and the node as the page says, on the node with this number.
    pub fn describe(&self, node: usize) {
        let mut setup = section("Set up three nodes");
        setup.block("conf registry");
        self.psql(node, &setup.block("sql every"));
        self.psql(node, &setup.block("sql db1").replace("db1", NODES[node]));
        // The view lets a load insert rows that name their node.
        let node_name = NODES[node];
        let view = format!(
            "CREATE VIEW load_rows AS SELECT id, customer FROM orders;
             ALTER VIEW load_rows ALTER customer SET DEFAULT '{node_name}'"
        );
        self.psql(node, &view);
    }

    /// Creates the subscriptions of the page that are between the first `nodes` nodes.
    pub fn subscribe(&self, nodes: usize) {
        self.subscribe_forwarding(nodes, "{}");
    }

    /// Does what [`Nodes::subscribe`] does, with another value of `forward_origins`.
    pub fn subscribe_forwarding(&self, nodes: usize, forward_origins: &str) {
        let mut setup = section("Set up three nodes");
        for block in ["conf registry", "sql every", "sql db1"] {
            setup.block(block);
        }
        for (subscriber, name) in NODES.iter().enumerate().take(nodes) {
            let block = setup.block(&format!("sql {name}"));
            for statement in block.split_inclusive(';') {
                if NODES[..nodes].iter().any(|provider| statement.contains(&format!("host={provider} "))) {
                    self.psql(subscriber, &statement.replace("'{}'", &format!("'{forward_origins}'")));
                }
            }
        }
        for subscriber in 0..nodes {
            self.wait_for_subscriptions(subscriber, nodes - 1);
        }
    }

    /// Waits until this many subscriptions of a node replicate.
    pub fn wait_for_subscriptions(&self, node: usize, count: usize) {
        let query = "SELECT count(*) FROM pglogical.show_subscription_status() WHERE status = 'replicating'";
        let mut client = self.connect(node);
        let log = || self.servers[node].log();
        assert!(within(PATIENCE, || client.one::<i64>(query) == count as i64), "{}", log());
    }

    /// Inserts rows on a node, and returns them.
    pub fn insert(&self, node: usize, count: u32) -> Vec<NodeRow> {
        insert(&mut self.connect(node), node, count)
    }

    /// Restarts a node with another value of a setting, and connects the subscriptions of the other nodes to it again.
    pub fn restart_with(&mut self, node: usize, setting: &str, value: &str) {
        self.servers[node].set(setting, value);
        self.servers[node].restart(Stop::Fast);
        // A subscription that fails several times while the node is down would wait for three minutes.
        for (subscriber, name) in NODES[..self.servers.len()].iter().enumerate().filter(|(number, _)| *number != node) {
            let subscription = format!("{name}_from_{}", NODES[node]);
            for action in ["disable", "enable"] {
                let known = "FROM pglogical.subscription WHERE sub_name =";
                let alter = format!("SELECT pglogical.alter_subscription_{action}(sub_name, true)");
                self.psql(subscriber, &format!("{alter} {known} '{subscription}'"));
            }
        }
    }

    /// Starts sessions that insert rows on a node.
    pub fn load(&self, node: usize) -> Load {
        Load::start(&self.servers[node], 2, &[Ask::Insert], "")
    }

    /// Waits until all nodes have received what the other nodes have committed.
    pub fn settle(&self) {
        (0..self.servers.len()).for_each(|node| self.settle_from(node));
    }

    /// Waits until the other nodes have received what this node has committed.
    pub fn settle_from(&self, node: usize) {
        self.psql(node, "SELECT pglogical.wait_slot_confirm_lsn(NULL, NULL)");
    }

    /// Checks that all nodes have these rows and no others.
    pub fn check_rows(&self, committed: &[NodeRow]) -> Result<(), String> {
        self.settle();
        (0..self.servers.len()).try_for_each(|node| self.check_node(node, committed))
    }

    /// Checks that a node has these rows, which are in order, and no others.
    pub fn check_node(&self, node: usize, committed: &[NodeRow]) -> Result<(), String> {
        let (found, name) = (rows(&mut self.connect(node)), NODES[node]);
        let lost = committed.iter().filter(|row| found.binary_search(row).is_err()).count();
        ensure!(lost == 0, "{lost} of {} committed rows are not on {name}", committed.len());
        ensure!(found.len() == committed.len(), "{name} has {} rows, not {}", found.len(), committed.len());
        Ok(())
    }
}

/// Inserts rows in a session on a node, and returns them.
pub fn insert(client: &mut Client, node: usize, count: u32) -> Vec<NodeRow> {
    let name = NODES[node];
    let rows = format!("INSERT INTO orders (customer) SELECT '{name}' FROM generate_series(1, {count}) RETURNING id");
    inserted(node, client.all(&rows))
}

/// Returns the rows of a node in order.
fn rows(client: &mut Client) -> Vec<NodeRow> {
    let found = client.query("SELECT id, customer FROM orders ORDER BY id, customer COLLATE \"C\"", &[]);
    found.expect("a table").iter().map(|row| (row.get(0), row.get(1))).collect()
}

/// Returns rows with these IDs that a node has inserted.
pub fn inserted(node: usize, ids: Vec<i64>) -> Vec<NodeRow> {
    ids.into_iter().map(|id| (id, NODES[node].to_string())).collect()
}
