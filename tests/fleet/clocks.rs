//! A registry whose own clock is wrong.

use cluster::{Answer, Ask, Cluster, History, Load, within};

use crate::fleet::{LAYOUT, SOON, logged, refused, renewed, renewed_above, seen, server, string, wait_for_log};

/// The registry's clock is five minutes behind, ten years ahead, and right again. At each step, another server joins the fleet. A clock
/// that is ten years ahead assigns nothing, and all servers keep the worker IDs that they have.
#[test]
fn a_registry_whose_clock_is_wrong_grants_nothing_twice_and_stops_nobody() {
    let registry = Cluster::builder("wrong_clock").clock("+0").start_registry(LAYOUT);
    let mut servers: Vec<Cluster> = Vec::new();
    let mut loads = Vec::new();
    for (n, offset) in ["+0", "-300", "+315360000", "+0"].into_iter().enumerate() {
        registry.set_clock(offset);
        let next = server(&format!("wrong_clock_{n}"), &string(&registry)).start();
        if offset == "+315360000" {
            for (server, is_new) in servers.iter().map(|server| (server, false)).chain([(&next, true)]) {
                wait_for_log(server, "this server's clock is behind the registry's clock");
                assert_eq!(refused(&mut server.connect()).is_some(), is_new, "{}", server.log());
            }
            registry.set_clock("+0");
        }
        renewed(&registry, &next);
        Load::prepare(&next);
        loads.push(Load::start(&next, 2, Ask::READING, ""));
        servers.push(next);
        for server in &servers {
            let count = seen(&registry, server)[0].count;
            renewed_above(&registry, server, count);
            assert!(within(SOON, || refused(&mut server.connect()).is_none()), "{offset}: {}", server.log());
        }
    }
    let mut ledger = History::default();
    loads.into_iter().for_each(|load| ledger.merge(load.finish()));
    ledger.check(1_000).unwrap();
    assert!(ledger.errors.is_empty(), "{:?}", ledger.errors);
    let workers: i64 = registry.connect().one("SELECT count(*) FROM snowflake_registry.node");
    assert_eq!(workers, servers.len() as i64);
    for server in &servers {
        assert_eq!(logged(server, "a copy of this server"), 0, "{}", server.log());
    }
    let quarantine: i64 = registry.connect().one("SELECT count(quarantine_until) FROM snowflake_registry.status");
    assert_eq!(quarantine, 0);
}

/// The clock of the registry is 16 minutes behind, so that it grants a lease of 10 minutes for 4 minutes at most. Heartbeats succeed.
#[test]
fn a_server_warns_if_the_clock_of_the_registry_leaves_little_of_its_lease() {
    let registry = Cluster::builder("behind_clock").clock("-960").start_registry(LAYOUT);
    let server = server("behind_clock_1", &string(&registry)).start();
    renewed(&registry, &server);
    wait_for_log(&server, "less than half of the lease is left, because the registry's clock is behind");
    wait_for_log(&server, "DETAIL:  This server's clock shows 20");
    assert_eq!(logged(&server, "heartbeat failed"), 0, "{}", server.log());
    assert_eq!(refused(&mut server.session()), None);
}
