//! Servers that stop and crash.

use cluster::{Answer, Stop, assert_caught, ensure};

use crate::servers::{check_ledger, draw, next_value, registry, server};

/// Draws ten numbers, stops the server in one way, and draws ten more.
fn check_stop(name: &str, how: Stop) -> Result<(), String> {
    let registry = registry(name, 100);
    let mut server = server(&format!("{name}_1"), &registry).start();
    let mut ledger = vec![draw(&mut server.session(), 10)];
    server.restart(how);
    ledger.push(draw(&mut server.connect(), 10));
    check_ledger(&ledger)?;
    let numbers: Vec<i64> = ledger.concat();
    ensure!(numbers == (1..=20).collect::<Vec<_>>(), "the numbers have a hole: {numbers:?}");
    Ok(())
}

#[test]
fn a_server_that_is_stopped_gives_its_numbers_back() {
    check_stop("seg_stop", Stop::Fast).unwrap();
}

#[test]
fn numbers_that_are_not_given_back_are_caught() {
    assert_caught(check_stop("seg_kill", Stop::Immediate), "the numbers have a hole");
}

/// Both blocks are given back, also if the newer one is untouched.
#[test]
fn a_server_that_is_stopped_gives_both_blocks_back() {
    let registry = registry("seg_both", 10);
    let (mut server, mut client) = server("seg_both_1", &registry).start_session();
    assert_eq!(draw(&mut client, 8), (1..=8).collect::<Vec<_>>());
    // The second block is there when half of the first one is drawn.
    let fetched = "SELECT coalesce(sum(fetches), 0)::bigint FROM snowflake_segments";
    assert!(cluster::within(crate::servers::SOON, || client.one::<i64>(fetched) == 2), "{}", server.log());
    assert!(next_value(&registry, "orders") > 11);
    server.stop(Stop::Fast);
    assert_eq!(next_value(&registry, "orders"), 9, "{}", server.log());
}

/// Sessions draw while their server crashes again and again, and another server draws meanwhile.
#[test]
fn a_crash_leaves_holes_and_repeats_nothing() {
    let registry = registry("seg_crash", 50);
    let mut crashing = server("seg_crash_1", &registry).start();
    let other = server("seg_crash_2", &registry).start();
    let (mut ledger, mut clear) = (Vec::new(), other.session());
    crashing.session();
    for _ in 0..4 {
        let mut client = crashing.connect();
        ledger.push(draw(&mut client, 777));
        // The numbers of the last statement may be lost with the connection, but not repeated.
        ledger.push(draw(&mut clear, 77));
        crashing.restart(Stop::Immediate);
    }
    ledger.push(draw(&mut crashing.connect(), 777));
    let drawn: i64 = ledger.iter().map(|numbers| numbers.len() as i64).sum();
    let highest = check_ledger(&ledger).unwrap();
    assert!(highest > drawn, "a crash left no hole");
    // A crash loses at most two blocks, the longer of which doubled at most ten times.
    let step = "SELECT max(step) FROM snowflake_segments";
    assert!(clear.one::<i64>(step) <= 50 << 10);
}

/// A session that is killed takes all sessions with it, and PostgreSQL starts them again without the shared memory.
#[test]
fn a_session_that_is_killed_leaves_holes_and_repeats_nothing() {
    let registry = registry("seg_backend", 50);
    let (server, mut client) = server("seg_backend_1", &registry).start_session();
    let mut ledger = vec![draw(&mut client, 10)];
    let pid: i32 = client.one("SELECT pg_backend_pid()");
    let killed = cluster::command("kill").args(["-9", &pid.to_string()]).status();
    assert!(killed.is_ok_and(|status| status.success()));
    let mut config = server.config("postgres");
    let config = config.connect_timeout(std::time::Duration::from_secs(1));
    let mut next = Vec::new();
    assert!(cluster::within(crate::servers::SOON, || {
        let Ok(mut client) = config.connect(postgres::NoTls) else { return false };
        let rows = client.query("SELECT snowflake_segment_nextval('orders') FROM generate_series(1, 10)", &[]);
        next = rows.unwrap_or_default().iter().map(|row| row.get(0)).collect();
        !next.is_empty()
    }));
    ledger.push(next);
    check_ledger(&ledger).unwrap();
}
