//! Several servers that issue IDs at the same time.

use std::time::Duration;

use cluster::{Answer, Ask, Builder, Cluster, History, Load, assert_caught, ensure, within};

use crate::fleet::{SOON, logged, registry, renewed, server, string, with_server};

/// Starts eight servers at the same instant, and inserts rows into all of them at the same time.
fn check_eight(name: &str, like: impl Fn(&str) -> Builder) -> Result<Vec<Cluster>, String> {
    let mut servers: Vec<Cluster> = (0..8).map(|n| like(&format!("{name}_{n}")).create()).collect();
    std::thread::scope(|scope| servers.iter_mut().for_each(|server| drop(scope.spawn(|| server.start()))));
    servers.iter().for_each(Load::prepare);
    let all: Vec<&Cluster> = servers.iter().collect();
    let ledger = History::together(&all, Ask::ALL, Duration::from_secs(4))?;
    ensure!(ledger.errors.is_empty(), "sessions got errors: {:?}", ledger.errors);
    ledger.check(1_000)?;
    Ok(servers)
}

#[test]
fn eight_servers_that_start_together_insert_rows_at_once() {
    let registry = registry("issue_eight");
    let servers = check_eight("issue_eight", |name| server(name, &string(&registry))).unwrap();
    let mut shown: Vec<i32> = Vec::new();
    for server in &servers {
        let mut client = server.connect();
        let number: String = client.one("SHOW snowflake_pg.worker_id");
        let id: i64 = client.one("SELECT snowflake_nextval()");
        let stamped: i32 = client.one(&format!("SELECT worker_id FROM snowflake_decode({id})"));
        assert_eq!(number, stamped.to_string());
        let status = "SELECT state || ' ' || worker_id FROM snowflake_status";
        assert_eq!(client.one::<String>(status), format!("issuing {stamped}"));
        shown.push(stamped);
        assert_eq!(renewed(&registry, server).worker, stamped);
        assert_eq!(logged(server, "WARNING:  snowflake_pg: heartbeat"), 0, "{}", server.log());
    }
    shown.sort_unstable();
    assert_eq!(shown, (0..8).collect::<Vec<_>>());
    let mut client = registry.connect();
    let complete = "SELECT count(*) FROM snowflake_registry.servers
                    WHERE state = 'live' AND host <> '' AND port = 5432 AND role = 'primary' AND server_version <> ''
                      AND extension_version <> '' AND system_identifier <> '' AND round_trip > '0'
                      AND abs(extract(epoch FROM clock_offset)) < 5 AND lease = '10 min'
                      AND granted_until > now() + interval '9 min'";
    assert_eq!(client.one::<i64>(complete), 8);
    // A connection is kept by nobody.
    let open = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'snowflake_pg'";
    assert!(within(SOON, || client.one::<i64>(open) == 0));
}

#[test]
fn the_status_shows_the_grant() {
    let (_registry, server, _) = with_server("issue_status", |builder| builder);
    let mut client = server.session();
    let granted =
        "SELECT registry_state = 'granted' AND worker_id = 0 AND worker_id_since <= now() AND last_heartbeat <= now()
                     AND granted_until BETWEEN now() + interval '9 min' AND now() + interval '11 min'
                     AND failed_heartbeats = 0 AND heartbeat_error IS NULL AND abs(extract(epoch FROM clock_offset)) < 5
                     AND fenced_by IS NULL AND fenced_at IS NULL
                   FROM snowflake_status";
    assert!(client.one::<bool>(granted), "{}", server.log());
    let without = Cluster::builder("issue_status_without").start();
    let nothing = "SELECT num_nulls(registry_state, worker_id_since, granted_until, last_heartbeat, failed_heartbeats,
                                    heartbeat_error, clock_offset, fenced_by, fenced_at) FROM snowflake_status";
    assert_eq!(without.session().one::<i32>(nothing), 9);
}

#[test]
fn eight_servers_with_one_worker_id_are_caught() {
    assert_caught(check_eight("issue_shared", Cluster::builder).map(drop), "IDs came twice");
}
