//! A server that has got a spare worker ID gives it back when the quarantine of its registry is over.

use std::time::Instant;

use cluster::{Answer, Ask, Builder, Client, Cluster, Load, Stop, assert_caught_by_chance, ensure, sqlstate, within};

use crate::fleet::{LAYOUT, SOON, logged, number, renewed, seen, server};

/// The first spare worker ID of the layout.
const SPARE: i32 = 768;

/// The clocks advance in steps of 50 minutes, because a spare worker ID has a lease of an hour. All steps together are longer than the
/// quarantine, which lasts for 24 hours and 30 minutes.
const STEP: u32 = 3_000;
const STEPS: u32 = 30;

/// Returns the worker ID of an ID in the layout.
fn worker(id: i64) -> i32 {
    i32::try_from(id >> 12 & 1023).expect("10 bits")
}

/// Returns the connection string of a registry and its standby. A server sends a heartbeat at once if its string has changed, so
/// different timeouts take the place of the time that passes.
fn string(registries: [&Cluster; 2], timeout: u32) -> String {
    let hosts = registries.map(|registry| registry.socket().display().to_string()).join(",");
    format!("host={hosts} user=postgres dbname=postgres target_session_attrs=read-write connect_timeout={timeout}")
}

/// Draws IDs until the server shows another worker ID than the spare one. Returns an error if the last ID is one of the spare worker ID.
fn draw_until_it_is_given_back(show: &mut Client, session: &mut Client) -> Result<Vec<i64>, String> {
    let (mut ids, deadline) = (Vec::new(), Instant::now() + SOON);
    while Instant::now() < deadline {
        // The worker ID is read before the ID is drawn.
        let shown: String = show.one("SHOW snowflake_pg.worker_id");
        let drawn = session.query_one("SELECT snowflake_nextval()", &[]).map_err(|error| sqlstate(&error).1)?;
        ids.push(drawn.get(0));
        if shown != SPARE.to_string() {
            let last = worker(drawn.get(0));
            ensure!(last != SPARE, "an ID has the spare worker ID {last} although the server has another one");
            return Ok(ids);
        }
    }
    Err(format!("the server keeps worker ID {SPARE}"))
}

/// The registry fails over, a server gets a spare worker ID, and the quarantine passes while the server issues IDs.
fn check(name: &str, change: impl Fn(Builder) -> Builder) -> Result<(), String> {
    let like = |part: &str| Cluster::builder(&format!("{name}_{part}")).clock("+0");
    let mut former = like("former").start_registry(LAYOUT);
    let registry = former.standby(like("registry").unset("shared_preload_libraries"));
    let mut first = server(&format!("{name}_1"), &string([&former, &registry], 10)).start();
    renewed(&former, &first);
    let mut ids = first.session().batch(1_000);
    first.stop(Stop::Fast);
    assert!(within(SOON, || seen(&registry, &first).len() == 1), "the standby does not follow:\n{}", registry.log());
    former.stop(Stop::Immediate);
    registry.promote();

    let second = server(&format!("{name}_2"), &string([&former, &registry], 10)).set("snowflake_pg.lease", "1h");
    let mut second = change(second).clock("+0").start();
    ensure!(renewed(&registry, &second).worker == SPARE, "no spare worker ID: {:?}", seen(&registry, &second));
    Load::prepare(&second);
    let load = Load::start(&second, 2, Ask::READING, "");
    let mut client = registry.connect();
    let heartbeat = |server: &mut Cluster, timeout: u32| {
        server.set("snowflake_pg.registry", &string([&former, &registry], timeout));
        server.reload();
    };
    for step in 1..=STEPS {
        let offset = format!("+{}", step * STEP);
        registry.set_clock(&offset);
        second.set_clock(&offset);
        heartbeat(&mut second, 10 + step);
        let renewed = format!(
            "SELECT granted_until > clock_timestamp() + interval '55 min' FROM snowflake_registry.servers WHERE worker_id = {SPARE}"
        );
        ensure!(within(SOON, || client.one(&renewed)), "step {step}: the grant is not renewed:\n{}", second.log());
    }
    // The registry has answered that the server is to leave, and the next heartbeat claims a worker ID of the ring.
    let (mut show, mut session) = (second.connect(), second.session());
    heartbeat(&mut second, 10);
    ids.extend(draw_until_it_is_given_back(&mut show, &mut session)?);
    ensure!(within(SOON, || number(&second) == "1"), "the server has worker ID {}", number(&second));
    ids.extend(session.batch(1_000));
    let mut ledger = load.finish();
    ensure!(ledger.errors.is_empty(), "{:?}\n{}", ledger.errors, second.log());
    for drawn in &ledger.stretches {
        let workers: Vec<i32> = drawn.iter().map(|id| worker(*id)).collect();
        let changes = workers.windows(2).filter(|pair| pair[0] != pair[1]).count();
        ensure!(changes == 1, "a session got worker IDs {:?} and then {:?}", workers.first(), workers.last());
    }
    assert_eq!(logged(&second, "lost worker ID"), 0, "{}", second.log());
    ledger.stretches.push(ids);
    ledger.check(5_000)
}

#[test]
fn a_spare_worker_id_is_given_back_under_load_after_the_quarantine() {
    check("given_back", |builder| builder).unwrap();
}

#[test]
fn a_spare_worker_id_that_stays_loaded_is_caught() {
    let outcome = || check("spare_kept", |builder| builder.fault("SpareKept"));
    assert_caught_by_chance(outcome, "an ID has the spare worker ID 768");
}
