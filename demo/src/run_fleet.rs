//! `make run-fleet`: three servers get their worker IDs from a registry and take orders at the same time, while the registry fails over.
//! Then one of them is copied.

use std::time::Instant;

use cluster::{Answer, Client, Cluster, check_unique, typed};

use crate::fleet::{RunningFleet, SERVERS, worker_id};
use crate::{copied_server, shop};

const SESSIONS: u32 = 4;

/// What the registry shows about its servers. All of them run on this machine, so that their data directories tell them apart.
const TABLE: &str = r"
SELECT worker_id, state, regexp_replace(data_directory, '^.*/', '') AS data_directory, role, seen::timestamptz(0),
    granted_until::timestamptz(0)
FROM snowflake_registry.servers ORDER BY worker_id;";

/// The sessions take orders for at least this many seconds, because the registry fails over meanwhile.
const LEAST_SECONDS: u32 = 3;

/// Starts the fleet, lets it take orders while the registry fails over, copies a server, and prints what came out.
pub fn run() {
    let seconds = shop::seconds().max(LEAST_SECONDS);
    println!("==> starting a registry with a standby, and {SERVERS} servers at the same time");
    let mut fleet = RunningFleet::start();
    let mut shops: Vec<Client> = fleet.servers.iter().map(|(server, _)| shop::open(server)).collect();

    println!(
        "==> {SESSIONS} sessions on each server take orders for {seconds} seconds. Meanwhile, the registry crashes"
    );
    let begun = Instant::now();
    let take = |server: &Cluster| drop(shop::take_orders(server, SESSIONS, seconds));
    let (worker, time, shop) = fleet.fail_over(take, |other| {
        let worker = worker_id(other);
        let time = begun.elapsed();
        let shop = shop::open(other);
        shop::take_orders(other, SESSIONS, 1);
        (worker, time, shop)
    });
    shops.push(shop);
    // A session that got an error would have ended the demonstration.
    println!(
        "    all sessions of the {SERVERS} servers took orders without an error while a standby became the registry"
    );
    println!("    a new server got worker ID {worker}, {:.1} s after the sessions had begun", time.as_secs_f64());
    println!("\nWho has which worker ID, from snowflake_registry.servers:\n");
    let mut psql = fleet.registry.psql();
    psql.args(["-d", "fleet"]);
    print!("{}", typed(psql, TABLE).expect("the view exists"));
    let mut ids = Vec::new();
    for (shop, (server, _)) in shops.iter_mut().zip(&fleet.servers) {
        let issued: Vec<i64> = shop.all(shop::IDS);
        println!("worker ID {}   {} IDs in orders and order lines", worker_id(server), issued.len());
        ids.extend(issued);
    }
    let rows = ids.len();
    let unique = check_unique(&mut ids);
    ids.dedup();
    println!("duplicates    {} among {rows} IDs of all servers", rows - ids.len());
    unique.unwrap_or_else(|reason| panic!("{reason}"));

    drop(shops);
    copied_server::show(&mut fleet);

    println!("\nTo connect:   {}", shop::psql(&fleet.servers[0].0, "shop"));
    println!("The registry: {}", shop::psql(&fleet.registry, "fleet"));
    println!("To stop:      {}", shop::stop());
    let servers = fleet.servers.len();
    fleet.keep();
    println!("\nrun-fleet: ok, the registry and {servers} servers go on running");
}
