//! A registry with segments, and the servers that draw from them.

use std::thread;

pub use cluster::SOON;
use cluster::{Answer, Builder, Client, Cluster, copy_ids, ensure};

/// Draws a number of segment `orders`.
pub const DRAW: &str = "SELECT snowflake_segment_nextval('orders')";

/// Starts a server with the registry of a fleet in its database `postgres`.
pub fn empty_registry(name: &str) -> Cluster {
    Cluster::builder(name).start_registry("41:10:12")
}

/// Starts a server with a registry, and creates segment `orders` with this step.
pub fn registry(name: &str, step: u64) -> Cluster {
    let registry = empty_registry(name);
    create(&registry, "orders", step);
    registry
}

/// Creates a segment that begins with 1.
pub fn create(registry: &Cluster, tag: &str, step: u64) {
    let sql = format!("SELECT snowflake_registry.create_segment('{tag}', 1, {step}, {})", step * 1_000);
    registry.connect().one::<i64>(&sql);
}

/// Drops a segment.
pub fn drop_segment(registry: &Cluster, tag: &str) {
    let sql = format!("SELECT snowflake_registry.drop_segment('{tag}')");
    registry.connect().run(&sql);
}

/// Returns the next number that the registry will give to a server.
pub fn next_value(registry: &Cluster, tag: &str) -> i64 {
    registry.connect().one(&format!("SELECT next_value FROM snowflake_registry.segment WHERE tag = '{tag}'"))
}

/// Returns the connection string of a registry.
pub fn string(registry: &Cluster) -> String {
    format!("host={} port=5432 user=postgres dbname=postgres connect_timeout=2", registry.socket().display())
}

/// Configures a server of the fleet whose heartbeats are a second apart.
pub fn server(name: &str, registry: &Cluster) -> Builder {
    Cluster::builder(name)
        .unset("snowflake_pg.worker_id")
        .set("snowflake_pg.registry", &string(registry))
        .set("snowflake_pg.lease", "10min")
}

/// Draws numbers of segment `orders`.
pub fn draw(client: &mut Client, count: u32) -> Vec<i64> {
    copy_ids(client, &format!("{DRAW} FROM generate_series(1, {count})"))
}

/// Lets several sessions of each server draw at the same time. Returns the numbers of each session.
pub fn draw_at_once(servers: &[&Cluster], sessions: usize, count: u32) -> Vec<Vec<i64>> {
    servers.iter().for_each(|server| drop(server.session()));
    thread::scope(|scope| {
        let each = servers.iter().flat_map(|server| (0..sessions).map(move |_| *server));
        let threads: Vec<_> = each.map(|server| scope.spawn(move || draw(&mut server.connect(), count))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a session draws")).collect()
    })
}

/// Checks that no number is in the ledger twice, and returns the highest.
pub fn check_ledger(ledger: &[Vec<i64>]) -> Result<i64, String> {
    let highest = ledger.iter().flatten().copied().max().unwrap_or(0);
    let mut seen = vec![false; usize::try_from(highest).map_err(|_| "a number is negative")? + 1];
    let mut twice = 0;
    for number in ledger.iter().flatten() {
        let number = usize::try_from(*number).map_err(|_| "a number is negative")?;
        twice += usize::from(std::mem::replace(&mut seen[number], true));
    }
    ensure!(twice == 0, "{twice} numbers came twice");
    Ok(highest)
}

/// Returns how many numbers the servers hold that are not drawn.
pub fn held(servers: &[&Cluster]) -> i64 {
    let left = "SELECT coalesce(sum(numbers_left), 0)::bigint FROM snowflake_segments";
    servers.iter().map(|server| server.session().one::<i64>(left)).sum()
}

/// Waits until the log contains this text.
pub fn wait_for_log(server: &Cluster, text: &str) {
    assert!(cluster::within(SOON, || server.log().contains(text)), "no {text:?} in the log:\n{}", server.log());
}
