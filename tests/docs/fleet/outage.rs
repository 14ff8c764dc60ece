//! A server is restarted, its machine is restarted, the registry does not answer, a server is fenced, and all worker IDs are in use.

use std::fs;

use cluster::{Answer, Boot, Stop, sqlstate, within};

use crate::fleet::hosts::{
    FleetHosts, SOON, check, check_log, check_next, section, wait_for_heartbeat, wait_for_worker,
};

#[test]
fn a_server_goes_on_without_the_registry_until_its_machine_is_restarted() {
    let hosts = FleetHosts::new("outage");
    let machine = Boot::new("fleet_page_outage");
    let mut registry = hosts.registry("registry.example", "41:10:12");
    let mut server = hosts.join(hosts.server("db1").on(&machine), 0, &registry);
    registry.stop(Stop::Fast);

    let mut restart = section("Restart a server or its machine");
    server.restart(Stop::Fast);
    check_log(&server, &restart.block("text restart"));
    wait_for_worker(&server, 0);
    let mut down = section("The registry is down");
    let (query, shown) = (down.block("sql down"), down.block("text"));
    // The page leaves out the end of the error, which contains the address of the registry.
    let short = query.replace("heartbeat_error", "left(heartbeat_error, 31) || ' ...' AS heartbeat_error");
    check(&server, "postgres", &short, &shown);
    assert!(down.is_empty());

    server.stop(Stop::Fast);
    machine.reboot();
    server.start();
    let mut session = server.session();
    let error = session.query("SELECT snowflake_nextval()", &[]).expect_err("the registry is down");
    let (_, message, _, hint) = sqlstate(&error);
    assert_eq!(restart.block("text reboot"), format!("ERROR:  {message}\nHINT:  {hint}\n"));
    assert!(restart.is_empty());
    registry.start();
    wait_for_worker(&server, 1);
}

#[test]
fn a_copy_of_a_machine_is_fenced_and_continues_after_a_restart() {
    let hosts = FleetHosts::new("fenced");
    let machine = Boot::new("fleet_page_fenced");
    let registry = hosts.registry("registry.example", "41:10:12");
    let mut server = hosts.join(hosts.server("db1").on(&machine), 0, &registry);
    server.stop(Stop::Fast);
    let witness = machine.witnesses().remove(0);
    let copy = fs::read(&witness).expect("the witness can be read");
    server.start();
    wait_for_heartbeat(&registry, 0);
    wait_for_heartbeat(&registry, 0);
    server.stop(Stop::Fast);
    // The server now has the memory of the moment at which it was copied, and the registry has seen the copy since then.
    fs::write(&witness, copy).expect("the witness can be written");
    server.start();
    let mut fenced = section("A server is fenced");
    let state = "SELECT registry_state = 'fenced' FROM snowflake_status";
    assert!(within(SOON, || server.session().one(state)), "{}", server.log());
    check_next(&mut fenced, "sql fenced", &server, "postgres");
    assert!(fenced.is_empty());
    server.restart(Stop::Fast);
    wait_for_worker(&server, 1);
}

#[test]
fn a_server_without_a_worker_id_says_that_all_are_in_use() {
    let hosts = FleetHosts::new("full");
    let registry = hosts.registry("registry.example", "41:0:22");
    let like = |host: &str| hosts.server(host).set("snowflake_pg.layout", "41:0:22");
    let server = like("db1").start();
    wait_for_worker(&server, 0);
    let next = like("db2").start();
    check_log(&next, "heartbeat failed: all worker IDs of the fleet are in use");
    let mut full = section("All worker IDs are in use");
    check_next(&mut full, "sql full", &registry, "fleet");
    assert!(full.is_empty());
    assert!(cluster::page("docs/registry.md").contains("`all worker IDs of the fleet are in use`"));
}
