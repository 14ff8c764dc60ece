//! A registry that does not answer.

use std::thread;
use std::time::{Duration, Instant};

use cluster::{Answer, Ask, Boot, Builder, Cluster, Load, Stop, assert_caught, check_unique, ensure, within};

use crate::fleet::{
    NARROW, SOON, UNASSIGNED, check_refused, logged, refused, renewed, renewed_above, server, status, string,
    wait_for_log, with_server,
};

const ENDED: &str = "the grant for worker ID 0 has ended";

#[test]
fn a_server_that_is_restarted_while_the_registry_is_down_goes_on_and_a_machine_that_is_restarted_waits() {
    let machine = Boot::new("issue_alone");
    let (mut registry, mut server, first) = with_server("issue_alone", |builder| builder.on(&machine));
    let mut ids = server.session().batch(1_000);
    registry.stop(Stop::Immediate);
    for how in [Stop::Fast, Stop::Immediate] {
        server.restart(how);
        ids.extend(server.session().batch(1_000));
        wait_for_log(&server, "continuing with worker ID 0 from the witness");
    }
    wait_for_log(&server, "The server can issue IDs with worker ID 0 until");
    // The registry that is back renews the same grant.
    wait_for_log(&server, "heartbeat failed: cannot connect to the registry");
    registry.start();
    wait_for_log(&server, "a heartbeat succeeded after");
    assert_eq!(renewed_above(&registry, &server, first.count).holder, first.holder);
    registry.stop(Stop::Immediate);
    server.stop(Stop::Fast);
    machine.reboot();
    server.start();
    let mut client = server.session();
    let [detail, hint] = check_refused(&mut client, UNASSIGNED);
    assert!(detail.starts_with("No heartbeat has succeeded since this server started. Since then, "), "{detail}");
    assert!(detail.contains("The last error was: cannot connect to the registry"), "{detail}");
    assert!(hint.ends_with("The server issues IDs as soon as it has a worker ID."), "{hint}");
    assert_eq!(status(&mut client), format!("refused: {UNASSIGNED}"));
    assert_eq!(client.one::<String>("SHOW snowflake_pg.worker_id"), "-1");
    registry.start();
    assert!(within(SOON, || refused(&mut client).is_none()), "{}", server.log());
    assert_eq!(client.one::<String>("SHOW snowflake_pg.worker_id"), "1");
    ids.extend(client.batch(1_000));
    check_unique(&mut ids).unwrap();
}

/// A fleet has one worker ID. One server is cut off for longer than its lease, and another server gets the worker ID.
fn check_lease(name: &str, change: impl Fn(Builder) -> Builder) -> Result<(), String> {
    let registry = Cluster::builder(name).clock("+0").start_registry(NARROW);
    let machine = Boot::new(name);
    let away = format!("{} connect_timeout=2", string(&registry));
    let like = |name: &str| server(name, &away).set("snowflake_pg.layout", NARROW).clock("+0");
    let cut_off = change(like(&format!("{name}_1")).on(&machine)).start();
    renewed(&registry, &cut_off);
    let mut client = cut_off.session();
    let mut ids = client.batch(1_000);
    let frozen = registry.frozen();
    let failed = "SELECT failed_heartbeats > 0 FROM snowflake_status";
    assert!(within(SOON, || client.one(failed)), "{}", cut_off.log());
    cut_off.set_clock("+500");
    ids.extend(client.batch(1_000));
    // The lease has ended, and so has the margin.
    cut_off.set_clock("+1300");
    let mut ended = false;
    let above = "SELECT snowflake_timestamp(snowflake_nextval()) > granted_until FROM snowflake_status";
    let seen = within(SOON, || {
        let above = client.query_one(above, &[]).map(|row| row.get(0));
        ended = above.is_err();
        above.unwrap_or(true)
    });
    assert!(seen, "the server neither issues IDs above its bound nor refuses to: {}", cut_off.log());
    if ended {
        let [detail, hint] = check_refused(&mut client, ENDED);
        assert!(detail.contains("The last successful heartbeat was at 20"), "{detail}");
        assert!(detail.contains("The last error was: "), "{detail}");
        assert!(hint.ends_with("The server resumes issuing IDs as soon as a heartbeat succeeds."), "{hint}");
        assert_eq!(status(&mut client), format!("refused: {ENDED}"));
    }
    let mut cut_off = cut_off;
    cut_off.set("snowflake_pg.registry", "host=/nowhere user=postgres");
    cut_off.reload();
    registry.set_clock("+1300");
    drop(frozen);
    let next = like(&format!("{name}_2")).clock("+1300").start();
    renewed(&registry, &next);
    drop(next.session());
    let loads = [&cut_off, &next].map(|server| Load::start(server, 2, Ask::READING, ""));
    thread::sleep(Duration::from_secs(3));
    let [_, next] = loads.map(Load::finish).map(|history| {
        ids.extend(history.ids());
        history
    });
    check_unique(&mut ids)?;
    ensure!(!next.is_empty(), "the next server has issued nothing: {:?}", next.errors);
    ensure!(ended, "the server issues IDs after the end of its grant");
    Ok(())
}

#[test]
fn a_server_that_is_cut_off_stops_at_its_bound_and_the_next_holder_begins_above_it() {
    check_lease("issue_lease", |builder| builder).unwrap();
}

#[test]
fn a_bound_that_is_ignored_is_caught() {
    assert_caught(check_lease("issue_unbound", |builder| builder.fault("BoundIgnored")), "IDs came twice");
}

/// The server loses its worker ID and gets another one while sessions issue IDs. Another server gets the first worker ID. One session
/// has issued IDs before the change and issues the next ones after it.
fn check_change(name: &str, change: impl Fn(Builder) -> Builder) -> Result<(), String> {
    // There are two worker IDs.
    const LAYOUT: &str = "41:1:21";
    let registry = Cluster::builder(name).clock("+0").start_registry(LAYOUT);
    let away = format!("{} connect_timeout=2", string(&registry));
    let like = |n: usize, clock: &str| {
        change(server(&format!("{name}_{n}"), &away).set("snowflake_pg.layout", LAYOUT).clock(clock)).start()
    };
    let server = like(1, "+0");
    renewed(&registry, &server);
    Load::prepare(&server);
    let mut quiet = server.connect();
    let mut ids: Vec<i64> = vec![quiet.one("SELECT snowflake_nextval()")];
    let load = Load::start(&server, 4, Ask::ALL, "");
    thread::sleep(Duration::from_secs(1));
    let frozen = registry.frozen();
    // The bound passes, and so does the margin.
    server.set_clock("+1300");
    thread::sleep(Duration::from_secs(2));
    registry.set_clock("+1300");
    drop(frozen);
    wait_for_log(&server, "the registry assigned worker ID 1");
    let next = like(2, "+1300");
    assert_eq!(renewed(&registry, &next).worker, 0);
    drop(next.session());
    let other = Load::start(&next, 2, Ask::READING, "");
    let end = Instant::now() + Duration::from_secs(2);
    while Instant::now() < end {
        ids.push(quiet.one("SELECT snowflake_nextval()"));
    }
    let history = load.finish();
    let mut ledger = other.finish();
    ensure!(!ledger.is_empty(), "the next server has issued nothing: {:?}", ledger.errors);
    let changed = history.ids();
    let errors = history.errors.clone();
    ledger.merge(history);
    ledger.stretches.push(ids);
    ledger.check(1_000)?;
    let worker = |id: &&i64| (**id >> 21) & 1;
    let of = |number: i64| changed.iter().filter(move |id| worker(id) == number);
    ensure!(of(0).count() > 100 && of(1).count() > 100, "{} and {}", of(0).count(), of(1).count());
    ensure!(of(0).max() < of(1).min(), "{:?} {:?}", of(0).max(), of(1).min());
    let known = [ENDED, UNASSIGNED].map(|message| format!("55000 {message}"));
    ensure!(errors.keys().all(|error| known.contains(error)), "{errors:?}");
    Ok(())
}

#[test]
fn sessions_go_on_with_another_worker_id() {
    check_change("issue_changed", |builder| builder).unwrap();
}

#[test]
fn a_session_that_does_not_notice_the_change_is_caught() {
    assert_caught(check_change("issue_unchanged", |builder| builder.fault("AssignmentIgnored")), "IDs came twice");
}

#[test]
fn a_grant_that_has_ended_heals_by_itself() {
    let registry = Cluster::builder("issue_heals").clock("+0").start_registry(NARROW);
    let like = server("issue_heals_1", &format!("{} connect_timeout=2", string(&registry)));
    let server = like.set("snowflake_pg.layout", NARROW).clock("+0").start();
    renewed(&registry, &server);
    let mut client = server.session();
    let mut ids = client.batch(1_000);
    for (clock, message) in [("+700", "continues"), ("+2000", "starts again")] {
        let frozen = registry.frozen();
        if clock == "+700" {
            for (earlier, line) in [
                ("+330", "less than half of the lease is left"),
                ("+480", "less than a quarter of the lease is left"),
                ("+640", "the lease has ended"),
            ] {
                server.set_clock(earlier);
                wait_for_log(&server, line);
                assert_eq!(logged(&server, line), 1);
            }
        }
        server.set_clock(clock);
        assert!(within(SOON, || refused(&mut client).is_some()), "{message}: {}", server.log());
        registry.set_clock(clock);
        drop(frozen);
        assert!(within(SOON, || refused(&mut client).is_none()), "{message}: {}", server.log());
        ids.extend(client.batch(1_000));
    }
    assert!(server.log().contains("lost worker ID 0"), "{}", server.log());
    check_unique(&mut ids).unwrap();
}
