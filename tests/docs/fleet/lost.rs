//! The registry is lost, and there is no backup, or a backup whose restore the registry does not notice.

use std::fs;

use cluster::{Answer, Boot, Host, Recipe, Stop, assert_caught, check_unique, ensure};

use crate::fleet::hosts::{
    FleetHosts, PAGE, check, check_log, check_next, check_together, issues, psql, section, wait_for_heartbeat,
    wait_for_worker,
};

/// The page that says how the tags are created again.
const ORDERS: &str = "docs/orders.md";

#[test]
fn a_new_registry_takes_over_servers_without_their_witnesses() {
    let hosts = FleetHosts::new("lost");
    let machine = Boot::new("fleet_page_lost");
    let mut old = hosts.registry("registry.example", "41:10:12");
    let mut server = hosts.join(hosts.server("db1").on(&machine), 0, &old);
    let mut second = hosts.join(hosts.server("db2").on(&machine), 1, &old);
    let mut ids = server.session().batch(1_000);
    ids.extend(second.session().batch(1_000));
    psql(&old, "fleet", "SELECT snowflake_registry.create_segment('orders', step => 100)").unwrap();
    server
        .session()
        .batch_execute(
            "CREATE TABLE orders (number bigint PRIMARY KEY DEFAULT snowflake_segment_nextval('orders'), item text);
             SELECT snowflake_create_series('receipt', 'R-{YYYY}-{MM}-{n:5}', kind => 'dense', time_zone => 'UTC');
             CREATE TABLE receipts (number text PRIMARY KEY);
             INSERT INTO orders (item) SELECT 'tea' FROM generate_series(1, 3);
             INSERT INTO receipts SELECT snowflake_serial('receipt', date '2026-03-01') FROM generate_series(1, 2)",
        )
        .expect("numbers of tags");
    // The second server takes the block from 101 to 200.
    assert_eq!(second.session().one::<i64>("SELECT snowflake_segment_nextval('orders')"), 101);
    old.stop(Stop::Immediate);
    let new = hosts.registry("registry2.example", "41:10:12");
    hosts.move_to_second(&mut server);
    hosts.move_to_second(&mut second);
    let mut replace = section("Replace a registry that has no backup");
    let mut tags = Recipe::of(ORDERS, "Create the segments in a new registry");
    let drawn = tags.block("sql drawn");
    check(&server, "postgres", &drawn, &tags.block("text"));
    let text = |path: &str| cluster::page(path).replace('\n', " ");
    let told = "second server shows the `next_number` 102 for `orders`";
    assert!(text(ORDERS).contains(told));
    let shown = psql(&second, "postgres", &drawn).unwrap();
    assert!(shown.lines().any(|line| line.split_whitespace().eq(["orders", "|", "102"])), "{shown}");
    check_next(&mut tags, "sql stored", &server, "postgres");
    assert!(text(PAGE).contains("logs `the registry belongs to a different fleet`"));
    for server in [&mut server, &mut second] {
        check_log(server, "heartbeat failed: the registry belongs to a different fleet");
        server.stop(Stop::Fast);
    }
    let directory = machine.dir().display().to_string();
    new.connect_to("fleet").batch_execute(&tags.block("sql tags")).unwrap();
    hosts.shell(&replace.block("sh witness").replace("/dev/shm", &directory), &server).unwrap();
    assert!(replace.is_empty() && tags.is_empty());
    for (worker, server) in [(0, &mut server), (1, &mut second)] {
        server.start();
        wait_for_worker(server, worker);
        wait_for_heartbeat(&new, worker);
        ids.extend(server.session().batch(1_000));
    }
    check_unique(&mut ids).unwrap();
    // The numbers continue above those of the lost registry.
    let next = "INSERT INTO orders (item) VALUES ('tea')
        RETURNING number || ' ' || snowflake_serial('receipt', date '2026-03-01')";
    assert_eq!(server.session().one::<String>(next), "501 R-2026-03-00501");
    assert_eq!(second.session().one::<i64>("SELECT snowflake_segment_nextval('orders')"), 601);
}

/// A snapshot of the registry's disk is restored. A server that got its worker ID after the snapshot continues, but cannot reach the
/// registry. `closed` says whether the quarantine is begun by hand, as the page says.
fn check_snapshot(test: &'static str, closed: bool) -> Result<(), String> {
    let hosts = FleetHosts::new(test);
    let mut registry = hosts.registry("registry.example", "41:10:12");
    let dir = registry.dir().to_path_buf();
    let snapshot = Host::get().fresh_dir(&format!("fleet_page_{test}.snapshot"));
    registry.stop(Stop::Fast);
    Host::get().copy_dir(&dir, &snapshot);
    registry.start();
    let mut server = hosts.join(hosts.server("db1"), 0, &registry);
    server.set("snowflake_pg.registry", "host=/nowhere");
    server.reload();
    check_log(&server, "heartbeat failed: cannot connect to the registry");

    registry.stop(Stop::Fast);
    fs::remove_dir_all(&dir).expect("the data directory can be removed");
    fs::rename(&snapshot, &dir).expect("the snapshot can be renamed");
    registry.start();
    let mut restore = section("Restore the registry");
    let (statement, shown) = (restore.block("sql close"), restore.block("text"));
    assert!(restore.is_empty());
    if closed {
        check(&registry, "fleet", &statement, &shown);
        let status = psql(&registry, "fleet", "SELECT life_reason, spare_open FROM snowflake_registry.status")?;
        ensure!(status.contains("close() was called by") && status.contains("| f"), "the status is\n{status}");
    }
    let second = hosts.server("db2").start();
    let mut fleet = vec![&server];
    if closed {
        check_log(&second, "heartbeat failed: the registry is in quarantine, and no spare worker ID is free");
    } else {
        wait_for_worker(&second, 0);
        fleet.push(&second);
    }
    check_together(&fleet)?;
    ensure!(issues(&second) != closed, "the new server has a worker ID");
    Ok(())
}

#[test]
fn a_registry_that_is_restored_from_a_snapshot_is_closed() {
    check_snapshot("closed", true).unwrap();
}

#[test]
fn a_registry_that_is_restored_from_a_snapshot_and_not_closed_is_caught() {
    assert_caught(check_snapshot("reopened", false), "IDs came twice");
}
