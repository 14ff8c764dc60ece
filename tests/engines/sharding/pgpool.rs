//! pgpool-II in front of two servers, in the mode of the page and in the mode against which the page warns.

use cluster::{
    Answer, Client, Cluster, Host, PATIENCE, Scratch, Service, assert_caught, check_unique, ensure, loopback, within,
};
use postgres::{Config, NoTls};

use crate::sharding::page::section;

/// The mode on the page, and the other one.
const STREAMING: &str = "'streaming_replication'";
const NATIVE: &str = "'native_replication'";

/// How many rows the clients insert.
const ROWS: usize = 20;

/// A constant that does not fit 32 bits.
const ID: i64 = 1_234_567_890_123_456_789;

/// A running pgpool-II and the servers behind it.
struct PgpoolCluster {
    service: Service,
    config: Config,
    nodes: [Cluster; 2],
    /// The directory of the configuration, the sockets and the log. It is removed last.
    _directory: Scratch,
}

impl PgpoolCluster {
    /// Starts pgpool-II with the configuration of the page in this mode, and creates a table through it.
    fn start(name: &str, mode: &str, nodes: [Cluster; 2]) -> PgpoolCluster {
        let [settings] = section("pgpool-II").rest(["conf pgpool"]);
        assert!(settings.contains(STREAMING) && settings.contains("'10.0.0.5'"), "{settings}");
        let directory = Scratch::new(&format!("{name}.pgpool"));
        let (file, dir, address) = (directory.0.join("pgpool.conf"), directory.0.display(), loopback(0));
        let socket = |node: usize| format!("'{}'", nodes[node].socket().display());
        let settings = settings.replace(STREAMING, mode).replace("'10.0.0.5'", &format!("'{address}'"));
        let settings = settings.replace("'db1'", &socket(0)).replace("'db2'", &socket(1));
        // By default, these files are in directories of the whole machine.
        let own = format!(
            "socket_dir = '{dir}'\npcp_socket_dir = '{dir}'\nwd_ipc_socket_dir = '{dir}'\npid_file_name = '{dir}/pid'\n\
             logdir = '{dir}'\npcp_listen_addresses = ''\npool_passwd = ''\nnum_init_children = 4\n"
        );
        let host = Host::get();
        host.write(&file, &format!("{settings}\n{own}"));
        host.write(&directory.0.join("pcp.conf"), "");
        let mut command = host.debian_program("pgpool").expect("`scripts/setup engines` provides pgpool");
        // In the foreground, and without the state of an earlier run.
        command.args(["-n", "-D", "-f"]).arg(&file).arg("-F").arg(directory.0.join("pcp.conf"));
        let mut service = Service::start(command, &directory.0.join("log"));
        let mut config = Config::new();
        config.host(&address).port(9999).user("postgres").dbname("postgres");
        let listens = || config.connect(NoTls).is_ok() || !service.is_running();
        assert!(within(PATIENCE, listens) && service.is_running(), "pgpool-II does not answer:\n{}", service.log());
        let pool = PgpoolCluster { service, config, nodes, _directory: directory };
        let mut client = pool.connect();
        for statement in [
            "CREATE EXTENSION snowflake_pg",
            "CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), customer text, at timestamptz)",
        ] {
            pool.run(&mut client, statement);
        }
        pool
    }

    fn connect(&self) -> Client {
        self.config.connect(NoTls).unwrap_or_else(|error| panic!("{error}:\n{}", self.service.log()))
    }

    /// Runs a statement with the simple query protocol.
    fn run(&self, client: &mut Client, statement: &str) {
        client
            .batch_execute(statement)
            .unwrap_or_else(|error| panic!("{statement}: {error:?}\n{}", self.service.log()));
    }

    /// Returns the IDs of so many customers on a node, whose names begin with this text, in the order of the names.
    fn ids(&self, node: usize, customer: &str, count: usize) -> Vec<i64> {
        let sql = format!("SELECT id FROM orders WHERE customer LIKE '{customer}%' ORDER BY customer");
        let mut session = self.nodes[node].connect();
        let mut ids = Vec::new();
        // A standby can be behind.
        let arrived = within(PATIENCE, || {
            ids = session.all(&sql);
            ids.len() == count
        });
        assert!(arrived, "node {node} has {ids:?}:\n{}", self.service.log());
        ids
    }
}

/// Two servers that pgpool-II is to keep equal, with distinct worker IDs.
fn servers(name: &str) -> [Cluster; 2] {
    ["1", "2"]
        .map(|number| Cluster::builder(&format!("{name}_db{number}")).set("snowflake_pg.worker_id", number).start())
}

/// A primary and its standby.
fn pair(name: &str) -> [Cluster; 2] {
    let primary = Cluster::builder(&format!("{name}_db1")).start();
    let standby = primary.standby(Cluster::builder(&format!("{name}_db2")).set("snowflake_pg.worker_id", "2"));
    [primary, standby]
}

/// Inserts rows through pgpool-II. Each row must have the same ID on both nodes.
fn check_rows(pool: &PgpoolCluster) -> Result<(), String> {
    let mut client = pool.connect();
    for n in 0..ROWS {
        pool.run(&mut client, &format!("INSERT INTO orders (customer) VALUES ('customer {n}')"));
    }
    let [first, second] = [0, 1].map(|node| pool.ids(node, "customer", ROWS));
    check_unique(&mut first.clone())?;
    let differ = first.iter().zip(&second).filter(|(first, second)| first != second).count();
    ensure!(differ == 0, "{differ} of {ROWS} rows have different IDs on the nodes");
    Ok(())
}

/// Inserts a row with a constant as its ID through pgpool-II, with this expression as its time.
fn check_constant(pool: &PgpoolCluster, customer: &str, at: &str) -> Result<(), String> {
    let mut client = pool.connect();
    pool.run(&mut client, &format!("INSERT INTO orders (id, customer, at) VALUES ({ID}, '{customer}', {at})"));
    let stored = [0, 1].map(|node| pool.ids(node, customer, 1));
    pool.run(&mut client, &format!("DELETE FROM orders WHERE customer = '{customer}'"));
    ensure!(stored == [[ID], [ID]], "{stored:?} is stored instead of {ID}");
    Ok(())
}

#[test]
fn nodes_in_streaming_replication_mode_have_the_same_ids() {
    let pool = PgpoolCluster::start("sharding_pgpool", STREAMING, pair("sharding_pgpool"));
    check_rows(&pool).unwrap();
    check_constant(&pool, "constant", "now()").unwrap();
    let workers = "SELECT count(DISTINCT id >> 12 & 1023) FROM orders";
    assert_eq!(pool.nodes[0].connect().one::<i64>(workers), 1, "the standby has drawn IDs");
}

#[test]
fn nodes_in_native_replication_mode_are_caught() {
    let pool = PgpoolCluster::start("sharding_native", NATIVE, servers("sharding_native"));
    // There is no error, and no node has the IDs of the other one.
    assert_caught(check_rows(&pool), &format!("{ROWS} of {ROWS} rows have different IDs"));
    // Only a statement that pgpool-II rewrites is affected.
    check_constant(&pool, "constant", "'2026-01-01'").unwrap();
    let cut = ID as i32;
    assert_caught(check_constant(&pool, "cut", "now()"), &format!("[[{cut}], [{cut}]] is stored instead of"));
}
