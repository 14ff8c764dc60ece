//! The background worker that makes the place for the mark: a server without room for the worker says so, the worker finds a
//! database to connect to, and it ends when the server stops, whatever it waits for.

use std::time::Instant;

use cluster::{Answer, Builder, Cluster, PATIENCE, Stop, assert_caught, ensure, sqlstate, within};

const WARNING: &str = "WARNING:  snowflake_pg: no free slot for background worker \"snowflake_pg mark worker\"";

#[test]
fn without_a_place_for_the_worker_the_log_and_the_first_session_are_told() {
    // PostgreSQL itself takes one place, for its worker for logical replication.
    let mut server = Cluster::builder("no_place").set("max_worker_processes", "1").start();
    let log = server.log();
    assert!(log.contains(WARNING), "{log}");
    let mut session = server.session();
    let [code, message, detail, hint] = session.error("SELECT snowflake_nextval()");
    assert_eq!(code, "53400");
    assert_eq!(message, "no free slot for background worker \"snowflake_pg mark worker\"");
    assert_eq!(
        detail,
        "The background worker creates replication origin \"snowflake_pg\", which stores the high-water mark. All slots allowed by \
         \"max_worker_processes\" are in use by other background workers."
    );
    assert_eq!(hint, "Increase \"max_worker_processes\" by 1 or more and restart the server.");
    let status = "SELECT state || ': ' || problem FROM snowflake_status";
    assert_eq!(session.one::<String>(status), format!("refused: {message}"));
    // The hint works.
    server.set("max_worker_processes", "2");
    server.restart(Stop::Fast);
    assert!(!server.log().contains(WARNING), "{}", server.log());
    let first = server.connect().one::<i64>("SELECT snowflake_nextval()");
    // When the mark has its place, issuing continues without the worker, and the log still has the warning.
    server.set("max_worker_processes", "1");
    server.restart(Stop::Immediate);
    assert!(server.log().contains(WARNING), "{}", server.log());
    assert!(server.connect().one::<i64>("SELECT snowflake_nextval()") > first);
}

#[test]
fn a_worker_id_with_another_prefix_is_found() {
    let own = "Set \"snowflake_pg.worker_id\" in postgresql.conf to a number from 0 to 1023 that no other server uses, and restart the \
               server.";
    let found = " Parameter \"snowflake.worker_id\" is set, but this extension does not use it: rename it to \"snowflake_pg.worker_id\".";
    let mut server =
        Cluster::builder("other_prefix").unset("snowflake_pg.worker_id").set("snowflake.worker_id", "7").start();
    for expected in [format!("{own}{found}"), own.to_string()] {
        let [.., hint] = server.session().error("SELECT snowflake_nextval()");
        assert_eq!(hint, expected);
        assert!(server.log().lines().any(|line| line.ends_with(&format!("HINT:  {expected}"))), "{}", server.log());
        assert_eq!(server.connect().one::<String>("SELECT hint FROM snowflake_status"), expected);
        server.unset("snowflake.worker_id");
        server.restart(Stop::Fast);
    }
    // The hint works, and -1 has the same effect as no setting.
    for (number, code) in [("-1", Some("55000")), ("7", None)] {
        server.set("snowflake_pg.worker_id", number);
        server.restart(Stop::Fast);
        assert_eq!(server.connect().code("SELECT snowflake_nextval()").as_deref(), code);
    }
}

/// A server that has run without the library, and then with it. Its catalog of replication origins is locked as long as the
/// prepared transaction `dropped` exists, also across restarts.
fn locked(builder: Builder) -> Cluster {
    let builder = builder.set("max_prepared_transactions", "5");
    let mut server = builder.set("shared_preload_libraries", "").start();
    let mut session = server.connect();
    session.run(
        "SELECT pg_replication_origin_create('another');
         BEGIN; SELECT pg_replication_origin_drop('another'); PREPARE TRANSACTION 'dropped'",
    );
    drop(session);
    server.stop(Stop::Fast);
    server.set("shared_preload_libraries", "snowflake_pg");
    server.start();
    server
}

fn check_locked(builder: Builder) -> Result<(), String> {
    let mut server = locked(builder);
    let mut session = server.connect();
    // The server stops as soon as it is told to, while the worker waits.
    let waits = "SELECT EXISTS (SELECT FROM pg_locks AS l JOIN pg_stat_activity USING (pid)
                 WHERE NOT granted AND backend_type LIKE 'snowflake_pg%')";
    ensure!(within(PATIENCE, || session.one(waits)), "the worker does not wait for the lock");
    let begun = Instant::now();
    let stopped =
        server.program("pg_ctl").args(["stop", "--mode=fast", "--timeout=20", "--pgdata"]).arg(server.dir()).output();
    let stopped = stopped.is_ok_and(|output| output.status.success());
    server.stop(Stop::Immediate);
    ensure!(stopped, "the server does not stop in {:?}", begun.elapsed());

    server.start();
    let mut session = server.connect();
    // The worker connects only for a moment now and then, so it does not prevent copies of template0: CREATE DATABASE tries for 5
    // s.
    ensure!(within(PATIENCE, || session.one(waits)), "the worker does not wait for the lock");
    let copied = within(PATIENCE, || session.code("CREATE DATABASE copy TEMPLATE template0").is_none());
    ensure!(copied, "template0 cannot be copied");
    session.run("CREATE EXTENSION snowflake_pg");
    let refused = session.query_one("SELECT snowflake_nextval()", &[]).expect_err("the mark has no place");
    let (code, message, ..) = sqlstate(&refused);
    ensure!((&*code, &*message) == ("55000", "the high-water mark is missing"), "{code} {message}");
    // Issuing begins without help when the lock is released.
    session.run("ROLLBACK PREPARED 'dropped'");
    let begins = within(PATIENCE, || session.code("SELECT snowflake_nextval()").is_none());
    ensure!(begins, "issuing does not begin:\n{}", server.log());
    Ok(())
}

#[test]
fn a_worker_that_waits_for_a_lock_stops_with_the_server_and_goes_on_by_itself() {
    check_locked(Cluster::builder("worker_locked")).unwrap();
}

#[test]
fn a_worker_that_is_deaf_to_sigterm_is_caught() {
    assert_caught(check_locked(Cluster::builder("worker_deaf").fault("DeafWorker")), "does not stop");
}

#[test]
fn without_template0_the_worker_uses_another_database() {
    for (name, gone) in
        [("worker_template0", &["template0"][..]), ("worker_template1", &["template0", "template1"][..])]
    {
        let mut server = Cluster::builder(name).set("shared_preload_libraries", "").start();
        let mut session = server.connect();
        for database in gone {
            let drop = format!("UPDATE pg_database SET datistemplate = false WHERE datname = '{database}'");
            session.run(&drop);
            session.run(&format!("DROP DATABASE {database}"));
        }
        drop(session);
        server.set("shared_preload_libraries", "snowflake_pg");
        server.restart(Stop::Fast);
        let mut session = server.connect();
        session.run("CREATE EXTENSION snowflake_pg");
        let begins = within(PATIENCE, || session.code("SELECT snowflake_nextval()").is_none());
        assert!(begins, "no IDs without {gone:?}:\n{}", server.log());
    }
}
