//! What happens when a server of the fleet is copied: first its data directory, then also what is in the memory of its machine.

use std::fs;

use cluster::{Answer, Boot, Cluster, Host, Stop, check_unique, sqlstate, within};

use crate::fleet::{RunningFleet, SERVERS, SOON, worker_id};
use crate::shop;

/// How many IDs the server and its copy issue.
const IDS: u32 = 10_000;

/// Copies a server of the fleet that has run from the beginning, starts the copy, and removes it.
pub fn show(fleet: &mut RunningFleet) {
    let name = shop::name("-fleet-copy");
    let other = Boot::new(&name);
    let mut copy = fleet.server(&name, &other).empty();
    let (server, machine) = &mut fleet.servers[SERVERS - 1];

    println!("\n==> copying the data directory of server {SERVERS}, and starting the copy");
    server.stop(Stop::Fast);
    Host::get().copy_dir(server.dir(), copy.dir());
    let memory =
        fs::read(machine.witnesses().pop().expect("the server has a witness")).expect("the witness can be read");
    server.start();
    copy.start();
    let (worker, assigned) = (worker_id(server), worker_id(&copy));
    println!("    the server continues with worker ID {worker}, and the copy has worker ID {assigned}");
    let mut ids = server.session().batch(IDS);
    ids.extend(copy.session().batch(IDS));
    check_unique(&mut ids).unwrap_or_else(|reason| panic!("{reason}"));
    println!("    duplicates among {} IDs of both: 0", ids.len());

    println!("==> starting the copy again, with a copy of the witness that is in the memory of the server's machine");
    copy.stop(Stop::Fast);
    wait_for_heartbeat(server);
    fs::write(other.witnesses().pop().expect("the copy has a witness"), memory).expect("the witness can be written");
    copy.start();
    let mut client = copy.session();
    let fenced = "SELECT registry_state = 'fenced' FROM snowflake_status";
    assert!(within(SOON, || client.one(fenced)), "the copy was not fenced:\n{}", copy.log());
    let error = client.query("SELECT snowflake_nextval()", &[]).expect_err("the copy issues no IDs");
    let (_, message, detail, hint) = sqlstate(&error);
    println!("    ERROR:  {message}\n    DETAIL:  {detail}\n    HINT:  {hint}");
    server.session().batch(IDS);
    println!("    the server itself continues with worker ID {}", worker_id(server));
}

/// Waits until the server has renewed its grant. From then on, the registry knows that the copied witness is a copy.
fn wait_for_heartbeat(server: &Cluster) {
    let mut client = server.session();
    let last = "SELECT last_heartbeat::text FROM snowflake_status";
    let before: Option<String> = client.one(last);
    assert!(within(SOON, || client.one::<Option<String>>(last) != before), "no heartbeat:\n{}", server.log());
}
