//! What segments cost: one connection for many blocks, and nothing while nobody draws.

use std::fs;
use std::thread;
use std::time::Duration;

use cluster::{Answer, Cluster, assert_caught, ensure, within};

use crate::servers::{SOON, create, draw, server};

/// How long a test watches a server that does nothing.
const WATCHED: Duration = Duration::from_secs(3);

/// Returns how many connections the servers of the fleet have opened.
fn connections(registry: &Cluster) -> usize {
    let log = registry.log();
    log.lines().filter(|line| line.contains("connection authorized") && line.contains("snowflake_pg")).count()
}

/// Returns how often the registrar of a server has waited.
fn waits(server: &Cluster) -> u64 {
    let pids = fs::read_dir("/proc").expect("a Linux system").flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let ours = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.starts_with(b"postgres: snowflake_pg registrar")
            && fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == server.dir())
    };
    let mut pids = pids.filter(ours);
    let status = fs::read_to_string(format!("/proc/{}/status", pids.next().expect("a registrar"))).expect("it runs");
    let waits = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    waits.and_then(|number| number.trim().parse().ok()).expect("a number")
}

/// Checks that the registrar of a server does not run for some seconds.
fn check_sleep(server: &Cluster) -> Result<(), String> {
    let before = waits(server);
    thread::sleep(WATCHED);
    let after = waits(server);
    ensure!(after == before, "the registrar has woken {} times", after - before);
    Ok(())
}

#[test]
fn blocks_come_over_one_connection_and_the_registrar_sleeps_afterwards() {
    let registry = Cluster::builder("seg_cost").set("log_connections", "on").start_registry("41:10:12");
    create(&registry, "orders", 10);
    // Heartbeats are at least 54 s apart.
    let (server, mut client) = server("seg_cost_1", &registry).set("snowflake_pg.lease", "12h").start_session();
    draw(&mut client, 20_000);
    let fetches = "SELECT fetches FROM snowflake_segments";
    assert!(client.one::<i64>(fetches) > 5);
    // The first one is that of the heartbeat.
    assert_eq!(connections(&registry), 2, "{}", registry.log());
    // The connection is closed when it has been idle for some seconds.
    let open = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'snowflake_pg'";
    assert!(within(SOON, || registry.connect().one::<i64>(open) == 0));
    assert!(within(SOON, || check_sleep(&server).is_ok()), "{:?}", check_sleep(&server));
    // A session that needs blocks wakes the registrar.
    let drawing = thread::spawn(move || {
        let left: i64 = client.one("SELECT numbers_left FROM snowflake_segments");
        thread::sleep(WATCHED / 3);
        draw(&mut client, left as u32 + 1)
    });
    assert_caught(check_sleep(&server), "the registrar has woken");
    drawing.join().expect("a session draws");
    assert_eq!(connections(&registry), 3);
}
