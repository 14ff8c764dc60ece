//! A registry that does not answer.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use cluster::{Answer, Boot, Builder, Host, Stop, assert_caught, ensure, within};

use crate::fake::by_tcp;
use crate::fleet::{
    SOON, logged, registrar, registry, renewed, renewed_above, seen, server, string, wait_for_log, with_server,
};

#[test]
fn an_outage_is_logged_once_and_its_end_too() {
    let (mut registry, server, first) = with_server("fleet_outage", |builder| builder);
    registry.stop(Stop::Immediate);
    wait_for_log(&server, "heartbeat failed: cannot connect to the registry");
    // Several heartbeats fail.
    std::thread::sleep(Duration::from_secs(4));
    // A heartbeat that was under way when the registry stopped has a cause of its own.
    assert_eq!(logged(&server, "heartbeat failed: cannot connect to the registry"), 1, "{}", server.log());
    let log = server.log();
    assert!(log.contains("The server can issue IDs with worker ID 0 until"), "{log}");
    assert!(log.contains("HINT:  Check that the registry's server is running"), "{log}");
    registry.start();
    wait_for_log(&server, "a heartbeat succeeded after");
    let after = renewed_above(&registry, &server, first.count);
    assert_eq!(after.holder, first.holder);
    assert_eq!(logged(&server, "a heartbeat succeeded after"), 1, "{}", server.log());
}

#[test]
fn a_frozen_registry_does_not_hold_up_a_shutdown() {
    let registry = registry("fleet_frozen");
    // A registrar that does not notice the shutdown waits for a minute.
    let string = format!("{} connect_timeout=60", string(&registry));
    let mut known = server("fleet_frozen_1", &string).start();
    renewed(&registry, &known);
    let frozen = registry.frozen();
    let mut new = server("fleet_frozen_2", &string).start();
    // Both servers are waiting for an answer.
    std::thread::sleep(Duration::from_secs(3));
    for server in [&mut known, &mut new] {
        let begun = Instant::now();
        server.stop(Stop::Fast);
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    }
    drop(frozen);
}

#[test]
fn a_host_that_does_not_answer_is_given_up_and_the_next_one_is_asked() {
    let first = registry("fleet_hosts_a");
    let second = registry("fleet_hosts_b");
    let hosts = [&first, &second].map(|registry| registry.socket().display().to_string()).join(",");
    let services = second.dir().join("services");
    Host::get().write(&services, &format!("[fleet]\nhost={hosts}\nuser=postgres\ndbname=postgres\n"));
    let services = services.to_string_lossy().into_owned();
    let list = format!("host={hosts} user=postgres dbname=postgres connect_timeout=2");
    // The list of ports that libpq reads from a URI has only empty entries.
    let uri = format!("postgresql://postgres@{}/postgres?connect_timeout=2", hosts.replace('/', "%2F"));
    let cases = [
        ("list", list.as_str(), ("PGUSER", "postgres")),
        ("uri", &uri, ("PGUSER", "postgres")),
        ("service", "service=fleet connect_timeout=2", ("PGSERVICEFILE", &services)),
        ("environment", "user=postgres dbname=postgres connect_timeout=2", ("PGHOST", &hosts)),
    ];
    let frozen = first.frozen();
    for (case, string, (variable, value)) in cases {
        let server = server(&format!("fleet_hosts_{case}"), string).env(variable, value).start();
        renewed(&second, &server);
        assert_eq!(logged(&server, "heartbeat failed"), 0, "{}", server.log());
    }
    drop(frozen);
}

#[test]
fn an_address_that_does_not_answer_is_given_up_and_the_next_one_is_asked() {
    let registry = registry("fleet_addresses");
    let (port, silent) = by_tcp(&registry);
    let string = format!("host=localhost port={port} user=postgres dbname=postgres connect_timeout=2");
    let server = server("fleet_addresses_1", &string).fault("DeadAddress").start();
    renewed(&registry, &server);
    assert_eq!(logged(&server, "heartbeat failed"), 0, "{}", server.log());
    silent.set_nonblocking(true).expect("it is a socket");
    assert!(silent.accept().is_ok(), "the first address was not tried");
}

#[test]
fn a_name_server_that_does_not_answer_does_not_hold_up_a_shutdown() {
    let string = "host=localhost port=1 user=postgres dbname=postgres connect_timeout=2";
    let mut server = server("fleet_names", string).fault("SlowLookup").start();
    wait_for_log(&server, "could not translate host name \"localhost\" to address: timed out");
    let pid = registrar(&server).expect("it runs");
    // The threads of earlier attempts continue after the attempts have ended.
    let earlier = threads(pid);
    server.set("snowflake_pg.registry", &string.replace("=2", "=60"));
    server.reload();
    let waits = || threads(pid).keys().any(|thread| !earlier.contains_key(thread));
    assert!(within(SOON, waits), "no thread looks up the addresses:\n{}", server.log());
    let masks = threads(pid);
    // SIGKILL and SIGSTOP cannot be blocked, and the C library keeps two signals for itself.
    let all = !(1 << 8 | 1 << 18 | 0b11 << 31);
    assert!(masks.values().all(|mask| mask & all == all), "a thread handles signals of PostgreSQL: {masks:x?}");
    let begun = Instant::now();
    server.stop(Stop::Fast);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert_eq!(logged(&server, "terminated by signal"), 0, "{}", server.log());
}

/// Returns the threads of a process, except the first one, and the signals that each of them blocks.
fn threads(pid: u32) -> BTreeMap<u32, u64> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("the process runs").flatten();
    let mask = |thread: fs::DirEntry| {
        let id = thread.file_name().to_str()?.parse().ok()?;
        let status = fs::read_to_string(thread.path().join("status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("SigBlk:"))?;
        Some((id, u64::from_str_radix(line.trim(), 16).ok()?))
    };
    threads.filter_map(mask).filter(|(id, _)| *id != pid).collect()
}

/// The registry stores a renewal, and the server ends before the answer arrives. The nonce of the renewal is in the witness.
fn check_half_way(name: &str, change: impl Fn(Builder) -> Builder) -> Result<(), String> {
    let machine = Boot::new(name);
    let (mut registry, mut server, first) = with_server(name, |builder| change(builder.on(&machine)));
    registry.set("synchronous_standby_names", "nobody");
    registry.reload();
    let waits = "SELECT EXISTS (SELECT FROM pg_stat_activity
                 WHERE application_name = 'snowflake_pg' AND wait_event = 'SyncRep')";
    let mut client = registry.connect();
    assert!(within(SOON, || client.one(waits)), "no renewal waits for the standby");
    server.stop(Stop::Immediate);
    registry.unset("synchronous_standby_names");
    registry.reload();
    server.start();
    let (mut fenced, mut renewed) = (false, false);
    within(SOON, || {
        fenced = logged(&server, "a copy of this server") > 0;
        renewed = seen(&registry, &server).first().is_some_and(|seen| seen.count > first.count + 2);
        fenced || renewed
    });
    ensure!(!fenced, "the server is fenced although it has no copy");
    ensure!(renewed, "the server does not renew its grant");
    let last = &seen(&registry, &server)[0];
    ensure!(last.holder == first.holder, "the server has another worker ID: {last:?}");
    Ok(())
}

#[test]
fn a_restart_during_a_renewal_is_not_taken_for_a_copy() {
    check_half_way("fleet_half_way", |builder| builder).unwrap();
}

#[test]
fn a_renewal_whose_nonce_is_not_in_the_witness_is_caught() {
    let outcome = check_half_way("fleet_forgotten", |builder| builder.fault("NonceForgotten"));
    assert_caught(outcome, "the server is fenced although it has no copy");
}

#[test]
fn a_reload_takes_a_new_connection_string_at_once() {
    let registry = registry("fleet_reload");
    let wrong = "host=/nowhere user=postgres dbname=postgres";
    // Heartbeats are two minutes apart.
    let mut server = server("fleet_reload_1", wrong).set("snowflake_pg.lease", "1d").start();
    // The next attempt follows after at least four seconds.
    let mut client = server.session();
    assert!(within(SOON, || client.one("SELECT failed_heartbeats >= 4 FROM snowflake_status")), "{}", server.log());
    let begun = Instant::now();
    server.set("snowflake_pg.registry", &string(&registry));
    server.reload();
    wait_for_log(&server, "the registry assigned worker ID 0");
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
}

#[test]
fn a_clock_that_is_wrong_is_reported() {
    let registry = registry("fleet_skew");
    let server = server("fleet_skew_1", &string(&registry)).clock("+5").start();
    wait_for_log(&server, "ahead of the registry's clock");
    renewed(&registry, &server);
    let offset = "SELECT extract(epoch FROM clock_offset)::float8 FROM snowflake_registry.servers";
    let offset: f64 = registry.connect().one(offset);
    assert!((3.0..7.0).contains(&offset), "{offset}");
    assert_eq!(logged(&server, "ahead of the registry's clock"), 1, "{}", server.log());
}
