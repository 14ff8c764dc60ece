//! A shop on a private server: its tables, the sessions that take orders, and how to connect to it.

use std::path::Path;

use cluster::{Answer, Client, Cluster, Host, repository};

/// Inserts an order with three lines. One statement draws the IDs of all four rows.
const TAKE_ORDER: &str = "\\set customer random(1, 100000)
WITH taken AS (INSERT INTO orders (customer) VALUES ('customer ' || :customer) RETURNING id)
INSERT INTO order_lines (order_id, product, quantity)
SELECT taken.id, 'product ' || n, n FROM taken, generate_series(1, 3) AS n;
";

const SCHEMA: &str = "
DROP TABLE IF EXISTS order_lines, orders;
CREATE TABLE orders (
    id bigint PRIMARY KEY DEFAULT snowflake_nextval(),
    customer text NOT NULL);
CREATE TABLE order_lines (
    id bigint PRIMARY KEY DEFAULT snowflake_nextval(),
    order_id bigint NOT NULL REFERENCES orders,
    product text NOT NULL,
    quantity int NOT NULL)";

/// The IDs of all rows.
pub const IDS: &str = "SELECT id FROM orders UNION ALL SELECT id FROM order_lines";

/// Creates the empty tables in the database `shop`, and connects to it.
pub fn open(server: &Cluster) -> Client {
    let mut client = server.connect();
    if !client.one::<bool>("SELECT EXISTS (SELECT FROM pg_database WHERE datname = 'shop')") {
        client.batch_execute("CREATE DATABASE shop").expect("the database can be created");
    }
    let mut shop = server.connect_to("shop");
    shop.batch_execute("CREATE EXTENSION IF NOT EXISTS snowflake_pg").expect("the extension is installed");
    shop.batch_execute(SCHEMA).expect("the tables can be created");
    shop
}

/// Lets this many sessions take orders for this many seconds. Returns what pgbench prints about their speed.
pub fn take_orders(server: &Cluster, sessions: u32, seconds: u32) -> Vec<String> {
    let script = server.dir().join("take_order.sql");
    Host::get().write(&script, TAKE_ORDER);
    let mut pgbench = server.program("pgbench");
    pgbench
        .args(["--no-vacuum", "--jobs=2", &format!("--client={sessions}"), &format!("--time={seconds}"), "--file"])
        .arg(&script)
        .arg("shop");
    let done = pgbench.output().expect("pgbench can be run");
    let text = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "pgbench failed:\n{text}\n{}", String::from_utf8_lossy(&done.stderr));
    let speed = text.lines().filter(|line| line.starts_with("tps") || line.starts_with("latency average"));
    speed.map(String::from).collect()
}

/// Returns for how many seconds orders are taken.
pub fn seconds() -> u32 {
    std::env::var("SECONDS_OF_LOAD").ok().and_then(|text| text.parse().ok()).unwrap_or(5)
}

/// Returns the name of a server. The environment variable `SNOWFLAKE_RUN` gives the servers different names, for tests that must
/// not disturb the user's servers.
pub fn name(suffix: &str) -> String {
    let name = std::env::var("SNOWFLAKE_RUN").unwrap_or_else(|_| "run".into());
    format!("{name}{suffix}-pg{}", cluster::major())
}

/// Returns the command that stops all servers of the demonstrations. Version 15 is the default of `make`.
pub fn stop() -> String {
    let major = cluster::major();
    if major == "15" { "make stop".into() } else { format!("make stop PG={major}") }
}

/// Returns the command that connects to a database of a server. If the socket is inside the repository, the path of the socket is
/// relative to the repository.
pub fn psql(server: &Cluster, database: &str) -> String {
    let socket = server
        .socket()
        .strip_prefix(repository())
        .map_or(server.socket().to_path_buf(), |relative| Path::new("$PWD").join(relative));
    let program = server.program("psql");
    format!("{} -h \"{}\" -p 5432 -U postgres {database}", program.get_program().to_string_lossy(), socket.display())
}
