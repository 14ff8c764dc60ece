//! `make run-fleet`: three servers get their worker IDs from a registry and take orders at the same time. Then one of them is copied.

use std::thread;

use cluster::{Answer, Client, check_unique, typed};

use crate::fleet::{Fleet, SERVERS, worker_id};
use crate::{copy, shop};

const SESSIONS: u32 = 4;

/// What the registry shows about its servers. All of them run on this machine, so that their data directories tell them apart.
const TABLE: &str = r"
SELECT worker_id, state, regexp_replace(data_directory, '^.*/', '') AS data_directory, role, seen::timestamptz(0),
    granted_until::timestamptz(0)
FROM snowflake_registry.servers ORDER BY worker_id;";

/// Starts the fleet, lets it take orders, copies a server, and prints what came out.
pub fn run() {
    let seconds = shop::seconds();
    println!("==> starting a registry, and {SERVERS} servers at the same time");
    let fleet = Fleet::start();
    let mut shops: Vec<Client> = fleet.servers.iter().map(|(server, _)| shop::open(server)).collect();

    println!("==> {SESSIONS} sessions on each server take orders for {seconds} seconds");
    thread::scope(|scope| {
        for (server, _) in &fleet.servers {
            scope.spawn(move || shop::take_orders(server, SESSIONS, seconds));
        }
    });
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
    let mut fleet = fleet;
    copy::show(&mut fleet);

    println!("\nTo connect:   {}", shop::psql(&fleet.servers[0].0, "shop"));
    println!("The registry: {}", shop::psql(&fleet.registry, "fleet"));
    println!("To stop:      {}", shop::stop());
    fleet.keep();
    println!("\nrun-fleet: ok, the registry and {SERVERS} servers go on running");
}
