//! The lock of the witness: which of several servers on one machine may issue IDs.

use std::fs;
use std::thread;
use std::time::Duration;

use cluster::{
    Answer, Boot, Chance, Cluster, Host, SPARSE_PER_SECOND, Stop, assert_caught, check_unique, ensure, sqlstate,
};

/// Lets two servers on copies of one data directory issue IDs at the same time.
fn check_twins(name: &str, machine: Option<&Boot>) -> Result<(), String> {
    let builder = |name: &str| Cluster::builder(name).sparse().set("fsync", "on").on(machine);
    let mut server = builder(name).start();
    let mut ids = server.session().batch(SPARSE_PER_SECOND);
    server.stop(Stop::Fast);
    let mut twin = builder(&format!("{name}_twin")).empty();
    Host::get().copy_dir(server.dir(), twin.dir());
    let mut refused = 0;
    for server in [&mut server, &mut twin] {
        server.start();
        match server.connect().query("SELECT snowflake_nextval_batch(100)", &[]) {
            Ok(rows) => ids.extend(rows.iter().map(|row| row.get::<_, i64>(0))),
            Err(error) => {
                ensure!(sqlstate(&error).0 == "55006", "{error:?}");
                refused += 1;
            }
        }
    }
    check_unique(&mut ids)?;
    ensure!(refused == 1, "{refused} servers were refused");
    Ok(())
}

#[test]
fn two_servers_on_copies_of_one_directory_repeat_nothing() {
    let machine = Boot::new("witness_twins");
    check_twins("witness_twins", Some(&machine)).unwrap();
}

#[test]
fn two_servers_on_copies_of_one_directory_without_a_witness_are_caught() {
    assert_caught(check_twins("unwitnessed_twins", None), "IDs came twice");
}

/// Starts a copy of a server beside it. Returns the machine, the server, the copy, and the IDs issued so far.
fn beside(name: &str, machine: &Boot, number: &str) -> (Cluster, Cluster, Vec<i64>) {
    let mut server = Cluster::builder(name).on(machine).start();
    let ids = server.session().batch(1_000);
    server.stop(Stop::Fast);
    let mut twin = Cluster::builder(&format!("{name}_twin")).on(machine).set("snowflake_pg.worker_id", number).empty();
    Host::get().copy_dir(server.dir(), twin.dir());
    server.start();
    twin.start();
    (server, twin, ids)
}

#[test]
fn a_second_server_with_the_same_number_is_refused_and_says_who_has_it() {
    let machine = Boot::new("witness_twin");
    let (mut server, twin, mut ids) = beside("witness_twin", &machine, "1");
    // Which server may issue IDs is decided by the first ID, not by the start.
    ids.extend(server.connect().batch(1_000));
    let mut session = twin.connect();
    assert_eq!(session.one::<String>("SELECT state FROM snowflake_status"), "idle");
    let directory = server.dir().display();
    let postmaster = fs::read_to_string(server.dir().join("postmaster.pid")).expect("the server runs");
    let detail = format!(
        "The worker ID is in use by the server with process ID {}, port 5432 and data directory \"{directory}\".",
        postmaster.lines().next().expect("the process ID")
    );
    let message = "worker ID 1 is in use by another server on this machine";
    let hint = "Stop one of the two servers, or give it a different worker ID and restart it.";
    let calls = [
        "snowflake_nextval()",
        "snowflake_nextval_batch(5)",
        "snowflake_reserve(5)",
        "snowflake_set_mark(1, force => true)",
    ];
    for call in calls {
        let error = session.query(&format!("SELECT {call}"), &[]).expect_err("the number is in use");
        assert_eq!(sqlstate(&error), ("55006".into(), message.into(), detail.clone(), hint.into()), "{call}");
    }
    let status = "SELECT concat_ws(': ', state, problem, hint) FROM snowflake_status";
    assert_eq!(session.one::<String>(status), format!("refused: {message}: {hint}"));
    ids.extend(server.connect().batch(1_000));
    // A server that has only been asked for its status does not keep the other one from its worker ID.
    server.stop(Stop::Immediate);
    assert_eq!(session.one::<String>("SELECT state FROM snowflake_status"), "idle");
    server.start();
    ids.extend(server.connect().batch(1_000));
    assert_eq!(session.one::<String>("SELECT state FROM snowflake_status"), "refused");
    // The hint works: the twin begins above all IDs of the other server, which is then refused.
    server.stop(Stop::Fast);
    ids.extend(session.batch(1_000));
    server.start();
    assert_eq!(server.connect().code("SELECT snowflake_nextval()").as_deref(), Some("55006"));
    check_unique(&mut ids).unwrap();
}

/// A server that cannot issue IDs does not lock the witness.
#[test]
fn a_second_server_that_is_refused_for_another_reason_does_not_stop_the_first_one() {
    let machine = Boot::new("witness_early");
    let (mut server, mut twin, mut ids) = beside("witness_early", &machine, "1");
    server.stop(Stop::Fast);
    twin.connect().run("SELECT pg_replication_origin_drop('snowflake_pg')");
    for sql in ["SELECT snowflake_nextval()", "SELECT snowflake_set_mark(2, force => true)"] {
        assert_eq!(twin.connect().code(sql).as_deref(), Some("55000"), "{sql}");
    }
    server.start();
    ids.extend(server.connect().batch(1_000));
    twin.stop(Stop::Immediate);
    check_unique(&mut ids).unwrap();
}

#[test]
fn a_second_server_with_another_number_issues_ids_too() {
    let machine = Boot::new("witness_other");
    let (server, twin, mut ids) = beside("witness_other", &machine, "2");
    for server in [&server, &twin] {
        ids.extend(server.connect().batch(1_000));
    }
    check_unique(&mut ids).unwrap();
}

/// Promotes a standby on the machine of its primary, which has the same worker ID and continues to run.
fn check_promoted(name: &str, machine: Option<&Boot>) -> Result<(), String> {
    let builder = |name: &str| Cluster::builder(name).sparse().set("fsync", "on").on(machine);
    let mut primary = builder(name).start();
    let mut ids = primary.session().batch(SPARSE_PER_SECOND);
    let standby = primary.standby(builder(&format!("{name}_standby")));
    ids.extend(primary.connect().batch(SPARSE_PER_SECOND));
    standby.promote();
    let mut session = standby.connect();
    let early = session.query("SELECT snowflake_nextval_batch(100)", &[]);
    ids.extend(primary.connect().batch(100));
    match early {
        Ok(rows) => ids.extend(rows.iter().map(|row| row.get::<_, i64>(0))),
        Err(error) => {
            ensure!(sqlstate(&error).0 == "55006", "{error:?}");
            primary.stop(Stop::Fast);
            ids.extend(session.batch(100));
        }
    }
    check_unique(&mut ids)
}

#[test]
fn a_standby_with_the_number_of_its_primary_issues_ids_when_the_primary_has_stopped() {
    let machine = Boot::new("witness_primary");
    check_promoted("witness_primary", Some(&machine)).unwrap();
}

#[test]
fn a_standby_with_the_number_of_its_primary_without_a_witness_is_caught() {
    assert_caught(check_promoted("unwitnessed_primary", None), "IDs came twice");
}

#[test]
fn a_server_whose_postmaster_was_killed_issues_ids_as_soon_as_it_is_started_again() {
    let machine = Boot::new("witness_killed");
    let mut server = Cluster::builder("witness_killed").on(&machine).start();
    let mut ids = server.session().batch(100);
    for _ in 0..3 {
        server.kill_postmaster();
        server.start();
        ids.extend(server.connect().batch(100));
    }
    check_unique(&mut ids).unwrap();
}

/// The kernel releases the lock with the last process of the old server, which can end after its postmaster.
#[test]
fn a_session_waits_for_the_last_process_of_the_old_server() {
    let machine = Boot::new("witness_logger");
    let mut server = Cluster::builder("witness_logger").on(&machine).set("logging_collector", "on").start();
    let mut ids = server.session().batch(100);
    let logger = server.frozen_logger();
    server.restart(Stop::Fast);
    let mut session = server.connect();
    session.run("SET statement_timeout = '300ms'");
    let error = session.query("SELECT snowflake_nextval()", &[]).expect_err("the lock is held");
    assert_eq!(sqlstate(&error).0, "57014", "the wait can be cancelled");
    session.run("SET statement_timeout = 0");
    let waiting = thread::spawn(move || session.batch(100));
    thread::sleep(Duration::from_millis(500));
    assert!(!waiting.is_finished(), "the session did not wait");
    drop(logger);
    ids.extend(waiting.join().expect("the session gets its IDs"));
    check_unique(&mut ids).unwrap();
}

/// The data directory shows that no other server can have the lock.
#[test]
fn an_old_process_that_does_not_end_delays_ids_and_does_not_stop_them() {
    let machine = Boot::new("witness_old");
    let mut server = Cluster::builder("witness_old").on(&machine).set("logging_collector", "on").start();
    let mut ids = server.session().batch(100);
    let logger = server.frozen_logger();
    server.restart(Stop::Fast);
    ids.extend(server.connect().batch(100));
    drop(logger);
    check_unique(&mut ids).unwrap();
}

#[test]
fn a_backend_crash_keeps_the_lock() {
    let machine = Boot::new("witness_crash");
    let (server, twin, mut ids) = beside("witness_crash", &machine, "1");
    let mut session = server.connect();
    ids.extend(session.batch(100));
    assert!(server.kill_session(&mut Chance::of("witness_crash")), "nobody to kill");
    server.wait_until_back();
    assert!(server.log().contains("all server processes terminated; reinitializing"), "{}", server.log());
    assert_eq!(twin.connect().code("SELECT snowflake_nextval()").as_deref(), Some("55006"));
    ids.extend(server.connect().batch(100));
    check_unique(&mut ids).unwrap();
}
