//! Many servers at once, and servers that leave locks behind.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use cluster::{Answer as _, Cluster, sqlstate, within};

use crate::calls::{claim, hello, registry};

const LAYOUT: &str = "41:10:12";

#[test]
fn a_hundred_servers_that_claim_at_once_get_a_hundred_numbers() {
    let server = registry("registry_hundred", LAYOUT);
    let connected: Vec<_> = (0..90).map(|_| server.connect()).collect();
    let claims = connected.into_iter().map(|mut client| thread::spawn(move || claim(&mut client, LAYOUT)));
    let claims: Vec<_> = claims.collect();
    let mut numbers: Vec<u32> =
        claims.into_iter().map(|claim| claim.join().expect("the thread ends").expect("a number").worker).collect();
    let mut client = server.connect();
    numbers.extend((0..10).map(|_| claim(&mut client, LAYOUT).expect("a number").worker));
    numbers.sort_unstable();
    assert_eq!(numbers, (0..100).collect::<Vec<u32>>());
    let known: i64 = client.one("SELECT count(DISTINCT holder) FROM snowflake_registry.node");
    assert_eq!(known, 100);
}

/// Several sessions notice the same failover at the same time.
#[test]
fn a_discontinuity_begins_one_life_whoever_notices_it() {
    let server = registry("registry_noticed", LAYOUT);
    let mut client = server.connect();
    claim(&mut client, LAYOUT).expect("a number");
    for life in 2..6 {
        client.batch_execute("UPDATE snowflake_registry.fleet SET timeline = timeline - 1").expect("a superuser may");
        let sessions: Vec<_> = (0..20).map(|_| server.connect()).collect();
        let claims: Vec<_> =
            sessions.into_iter().map(|mut client| thread::spawn(move || claim(&mut client, LAYOUT))).collect();
        let outcomes: BTreeSet<String> =
            claims.into_iter().map(|claim| format!("{:?}", claim.join().expect("the thread ends"))).collect();
        assert_eq!(client.one::<i64>("SELECT life FROM snowflake_registry.fleet"), life, "{outcomes:?}");
    }
}

fn idle_in_transaction(server: &Cluster) -> postgres::Client {
    let mut client = server.connect();
    client.batch_execute("BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0").expect("a session may");
    claim(&mut client, LAYOUT).expect("a number");
    client
}

#[test]
fn a_lock_that_is_left_in_a_transaction_is_an_error_in_bounded_time_and_ends() {
    let server = registry("registry_left", LAYOUT);
    let mut left = idle_in_transaction(&server);
    let mut client = server.connect();
    let row = client.query_one(&hello(LAYOUT), &[]).expect("hello takes no lock");
    let (fleet, nonce, life): (String, String, String) = (row.get("fleet"), row.get("nonce"), row.get("life"));
    let claim_sql = format!(
        "SELECT * FROM snowflake_registry.claim('{fleet}', '{LAYOUT}', 1288834974657, 0, '{nonce}', {life}, '{nonce}',
             9000000000000000000, '12 h', NULL)"
    );
    let begun = Instant::now();
    let error = client.batch_execute(&claim_sql).expect_err("the lock is held");
    assert_eq!(sqlstate(&error).0, "55P03");
    assert!(begun.elapsed() < Duration::from_secs(20), "the error came after {:?}", begun.elapsed());
    // The session that left the lock is ended, and the others go on.
    assert!(within(Duration::from_secs(60), || client.batch_execute(&claim_sql).is_ok()), "{}", server.log());
    assert!(left.simple_query("SELECT 1").is_err(), "the session goes on");
    // A session that waits can be cancelled.
    let _left = idle_in_transaction(&server);
    client.batch_execute("SET statement_timeout = '300ms'").expect("a session may");
    let begun = Instant::now();
    let error =
        client.batch_execute(&claim_sql.replace(&nonce, &nonce.replace('0', "1"))).expect_err("the lock is held");
    assert_eq!(sqlstate(&error).0, "57014");
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_registry_that_cannot_write_grants_nothing() {
    let server = registry("registry_read_only", LAYOUT);
    let mut client = server.connect();
    assert_eq!(claim(&mut client, LAYOUT).map(|node| node.worker), Ok(0));
    let before: String = client.one("SELECT string_agg(n::text, ' ') FROM snowflake_registry.node n");
    client.batch_execute("SET default_transaction_read_only = on").expect("a session may");
    let row = client.query_one(&hello(LAYOUT), &[]).expect("hello writes nothing");
    let (fleet, nonce): (String, String) = (row.get("fleet"), row.get("nonce"));
    let refused = client.code(&format!(
        "SELECT * FROM snowflake_registry.claim('{fleet}', '{LAYOUT}', 1288834974657, 0, '{nonce}', 1, '{nonce}', 9000000000000000000,
             '12 h', NULL)"
    ));
    assert_eq!(refused.as_deref(), Some("25006"));
    let standby = server.standby(Cluster::builder("registry_standby").unset("shared_preload_libraries"));
    let (code, message) = standby.connect().refusal(&hello(LAYOUT));
    assert_eq!((code.as_str(), message.as_str()), ("25006", "the registry is on a standby"));
    assert_eq!(client.one::<String>("SELECT string_agg(n::text, ' ') FROM snowflake_registry.node n"), before);
}
