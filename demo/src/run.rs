//! `make run`: a database of orders whose keys are snowflakes. Eight concurrent sessions and one COPY fill it.

use std::io::Write;
use std::time::Instant;

use cluster::{Answer, Builder, Client, Cluster};

use crate::shop;

const SESSIONS: u32 = 8;
const COPIED: u32 = 1_000_000;

/// Configures the server of `make run`.
fn kept() -> Builder {
    Cluster::builder(&shop::name(""))
        .set("snowflake_pg.worker_id", "7")
        .set("fsync", "on")
        .set("shared_buffers", "512MB")
        .set("max_wal_size", "8GB")
}

/// Stops the server. Returns false if it was not running.
pub fn stop() -> bool {
    kept().stop()
}

/// Starts the server, fills it, and prints what came out.
pub fn run() {
    let seconds = shop::seconds();
    println!("==> starting a private server");
    let mut server = kept().open();
    server.start();
    let mut shop = shop::open(&server);

    println!("==> {SESSIONS} sessions take orders for {seconds} seconds");
    for line in shop::take_orders(&server, SESSIONS, seconds) {
        println!("    {line} (orders of three lines)");
    }
    println!("==> COPY of {COPIED} orders without the id column");
    let copied_per_second = copy_orders(&mut shop);
    shop.batch_execute("VACUUM ANALYZE orders, order_lines").expect("tables can be vacuumed");

    let (rows, distinct): (i64, i64) = {
        let row = shop.query_one(&format!("SELECT count(*), count(DISTINCT id) FROM ({}) AS ids", shop::IDS), &[]);
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

    println!("\nTo connect:   {}", shop::psql(&server, "shop"));
    println!("To stop:      {}", shop::stop());
    assert_eq!(rows, distinct, "an ID came twice");
    println!("\nrun: ok, the server goes on running");
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
