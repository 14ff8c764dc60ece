//! `make run`: a database of orders whose keys are snowflakes. Eight concurrent sessions and one COPY fill it.

use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use cluster::{Answer, Builder, Client, Cluster, Host, repository};

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

const SESSIONS: u32 = 8;
const COPIED: u32 = 1_000_000;

fn main() {
    match std::env::args().nth(1).as_deref() {
        None => run(),
        Some("stop") if kept().stop() => println!("stopped"),
        Some("stop") => println!("stopped: no server was running"),
        Some(other) => panic!("unknown argument {other}"),
    }
}

/// Configures the server of `make run`. The environment variable `SNOWFLAKE_RUN` gives the server a different name, for tests
/// that must not disturb the user's server.
fn kept() -> Builder {
    let name = std::env::var("SNOWFLAKE_RUN").unwrap_or_else(|_| "run".into());
    Cluster::builder(&format!("{name}-pg{}", cluster::major()))
        .set("snowflake_pg.worker_id", "7")
        .set("fsync", "on")
        .set("shared_buffers", "512MB")
        .set("max_wal_size", "8GB")
}

fn run() {
    let seconds = std::env::var("SECONDS_OF_LOAD").ok().and_then(|text| text.parse().ok()).unwrap_or(5);
    println!("==> starting a private server");
    let mut server = kept().open();
    server.start();
    let mut client = server.connect();
    if !client.one::<bool>("SELECT EXISTS (SELECT FROM pg_database WHERE datname = 'shop')") {
        client.batch_execute("CREATE DATABASE shop").expect("the database can be created");
    }
    let mut shop = server.connect_to("shop");
    shop.batch_execute("CREATE EXTENSION IF NOT EXISTS snowflake_pg").expect("the extension is installed");
    shop.batch_execute(SCHEMA).expect("the tables can be created");

    println!("==> {SESSIONS} sessions take orders for {seconds} seconds");
    take_orders(&server, seconds);
    println!("==> COPY of {COPIED} orders without the id column");
    let copied_per_second = copy_orders(&mut shop);
    shop.batch_execute("VACUUM ANALYZE orders, order_lines").expect("tables can be vacuumed");

    let ids = "SELECT id FROM orders UNION ALL SELECT id FROM order_lines";
    let (rows, distinct): (i64, i64) = {
        let row = shop.query_one(&format!("SELECT count(*), count(DISTINCT id) FROM ({ids}) AS ids"), &[]);
        row.map(|row| (row.get(0), row.get(1))).expect("the tables can be counted")
    };
    let (orders, lines): (i64, i64) =
        (shop.one("SELECT count(*) FROM orders"), shop.one("SELECT count(*) FROM order_lines"));
    println!("\nrows          {orders} orders, {lines} order lines");
    println!("duplicates    {}", rows - distinct);
    println!("COPY          {copied_per_second:.0} rows per second");
    println!("IDs alone     {:.0} per second, one session", issue_rate(&mut shop));

    draw(&mut shop);
    show_range(&mut shop);

    println!("\nTo connect:   {}", psql(&server));
    println!("To stop:      {}", stop());
    assert_eq!(rows, distinct, "an ID came twice");
    println!("\nrun: ok, the server goes on running");
}

fn take_orders(server: &Cluster, seconds: u32) {
    let script = server.dir().join("take_order.sql");
    Host::get().write(&script, TAKE_ORDER);
    let mut pgbench = server.program("pgbench");
    pgbench
        .args(["--no-vacuum", "--jobs=2", &format!("--client={SESSIONS}"), &format!("--time={seconds}"), "--file"])
        .arg(&script)
        .arg("shop");
    let done = pgbench.output().expect("pgbench can be run");
    let text = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "pgbench failed:\n{text}\n{}", String::from_utf8_lossy(&done.stderr));
    for line in text.lines().filter(|line| line.starts_with("tps") || line.starts_with("latency average")) {
        println!("    {line} (orders of three lines)");
    }
}

fn copy_orders(shop: &mut Client) -> f64 {
    let begin = Instant::now();
    let mut copy = shop.copy_in("COPY orders (customer) FROM STDIN").expect("COPY can begin");
    let mut text = String::new();
    for n in 0..COPIED {
        text.push_str("customer ");
        text.push_str(&n.to_string());
        text.push('\n');
        if text.len() > 1 << 16 {
            copy.write_all(text.as_bytes()).expect("COPY takes data");
            text.clear();
        }
    }
    copy.write_all(text.as_bytes()).expect("COPY takes data");
    let rows = copy.finish().expect("COPY can end");
    rows as f64 / begin.elapsed().as_secs_f64()
}

fn issue_rate(shop: &mut Client) -> f64 {
    let begin = Instant::now();
    let issued: i64 = shop.one("SELECT count(snowflake_nextval()) FROM generate_series(1, 2000000)");
    issued as f64 / begin.elapsed().as_secs_f64()
}

/// Prints one ID. Each group of its bits is printed above the field to which the bits belong.
fn draw(shop: &mut Client) {
    let row = shop
        .query_one(
            "SELECT id, id::bit(64)::text, created_at::text, worker_id, sequence
             FROM (SELECT max(id) AS id FROM orders) AS newest, snowflake_decode(id)",
            &[],
        )
        .expect("an ID can be decoded");
    let (id, bits, created_at): (i64, String, String) = (row.get(0), row.get(1), row.get(2));
    let (worker, sequence): (i32, i32) = (row.get(3), row.get(4));
    println!("\nThe newest order's ID, {id}:\n");
    println!("    0 | {} | {} | {}", &bits[1..42], &bits[42..52], &bits[52..]);
    println!("      | {:<41} | {:<10} | {:<12}", "timestamp (41)", "worker(10)", "sequence(12)");
    println!("      | {created_at:<41} | {worker:<10} | {sequence:<12}");
}

/// Prints how many orders were taken within some milliseconds. The query finds these orders through the primary key.
fn show_range(shop: &mut Client) {
    let until: String = shop.one("SELECT snowflake_timestamp(max(id))::text FROM orders");
    let condition = format!("snowflake_between(id, timestamptz '{until}' - interval '10 ms', '{until}')");
    let query = format!("SELECT count(*) FROM orders WHERE {condition}");
    let found: i64 = shop.one(&query);
    println!("\nOrders of the last 10 ms before {until}: {found}\n\n    {query}\n");
    for line in shop.plan(&query).lines() {
        println!("    {line}");
    }
}

/// Returns the command that stops the server. Version 15 is the default of `make`.
fn stop() -> String {
    let major = cluster::major();
    if major == "15" { "make stop".into() } else { format!("make stop PG={major}") }
}

/// Returns the command that connects to the server. If the socket is inside the repository, the path of the socket is relative to
/// the repository.
fn psql(server: &Cluster) -> String {
    let socket = server
        .socket()
        .strip_prefix(repository())
        .map_or(server.socket().to_path_buf(), |relative| Path::new("$PWD").join(relative));
    let program: Command = server.program("psql");
    format!("{} -h \"{}\" -p 5432 -U postgres shop", program.get_program().to_string_lossy(), socket.display())
}
