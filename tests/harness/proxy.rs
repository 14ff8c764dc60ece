//! A test can delay a standby's acknowledgements, and no connection outlives its proxy.

use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use cluster::{Answer, Client, Cluster, PATIENCE, Proxy, output, within};

#[test]
fn a_commit_takes_as_long_as_the_acknowledgement_through_the_proxy() {
    const DELAY: Duration = Duration::from_millis(400);
    let mut primary = Cluster::builder("proxy_primary").start();
    let proxy = Proxy::before(&primary, "proxy");
    let standby = primary.standby_through(&proxy, Cluster::builder("proxy_standby"));
    primary.rely_on_standby();
    let mut session = primary.connect();
    session.batch_execute("CREATE TABLE orders (id int)").expect("a new table");
    let commit = |session: &mut Client| {
        let begin = Instant::now();
        session.batch_execute("INSERT INTO orders VALUES (1)").expect("a row");
        begin.elapsed()
    };
    proxy.delay(DELAY);
    for _ in 0..3 {
        let time = commit(&mut session);
        assert!(time >= DELAY, "a COMMIT took {time:?}");
    }
    proxy.delay(Duration::ZERO);
    // The control: the proxy caused the delay.
    assert!(within(PATIENCE, || commit(&mut session) < DELAY), "every COMMIT takes {DELAY:?} without the delay, too");

    // While acknowledgements are held, the row arrives and the COMMIT waits.
    let mut replica = standby.connect();
    session.batch_execute("TRUNCATE orders").expect("a superuser may");
    proxy.hold();
    let committing = thread::spawn(move || commit(&mut session));
    let waits = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep')";
    let mut watcher = primary.connect();
    assert!(within(PATIENCE, || watcher.one(waits)), "the COMMIT does not wait");
    let replayed = format!(
        "SELECT pg_last_wal_replay_lsn() >= '{}'",
        watcher.one::<String>("SELECT pg_current_wal_flush_lsn()::text")
    );
    assert!(within(PATIENCE, || replica.one(&replayed)), "the standby does not get what is sent:\n{}", standby.log());
    assert!(watcher.one::<bool>(waits), "the COMMIT does not wait for the acknowledgement");
    assert!(!committing.is_finished(), "the COMMIT ended without the acknowledgement");
    proxy.delay(Duration::ZERO);
    committing.join().expect("what was held is passed on");
}

#[test]
fn a_proxy_that_ends_takes_its_connections_along() {
    let server = Cluster::builder("proxy_server").start();
    let proxy = Proxy::before(&server, "proxy_ended");
    let socket = proxy.socket().to_path_buf();
    let through = |sql: &str| {
        let mut psql = server.psql();
        psql.env("PGHOST", &socket).args(["--command", sql]);
        psql
    };
    // The control: the proxy passes a connection on.
    output(&mut through("SELECT 1"));
    // One connection is busy, and the data that another has sent is held.
    let mut busy = through("SELECT pg_sleep(3600)").stderr(Stdio::null()).spawn().expect("psql can be run");
    let mut watcher = server.connect();
    let sleeps = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep')";
    assert!(within(PATIENCE, || watcher.one(sleeps)), "nothing comes through");
    proxy.hold();
    let mut held = through("SELECT 1").stderr(Stdio::null()).spawn().expect("psql can be run");
    drop(proxy);
    for psql in [&mut busy, &mut held] {
        let ended = within(PATIENCE, || psql.try_wait().expect("a child can be waited for").is_some());
        let _ = psql.kill();
        assert!(!psql.wait().expect("a child can be waited for").success(), "psql was answered");
        assert!(ended, "a connection outlives its proxy");
    }
    assert!(!socket.exists(), "the socket is left");
}
