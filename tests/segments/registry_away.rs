//! A registry that does not answer.

use std::thread;
use std::time::{Duration, Instant};

use cluster::{Answer, Stop, sqlstate, within};

use crate::servers::{DRAW, SOON, check_ledger, create, draw, held, registry, server};

#[test]
fn numbers_go_on_while_the_blocks_last_and_come_back_with_the_registry() {
    let mut registry = registry("seg_away", 100);
    create(&registry, "other", 100);
    let (server, mut client) = server("seg_away_1", &registry).start_session();
    let mut ledger = vec![draw(&mut client, 60)];
    // The second block is there.
    assert!(within(SOON, || held(&[&server]) == 240), "{}", held(&[&server]));
    registry.stop(Stop::Immediate);
    ledger.push(draw(&mut client, 240));
    for tag in ["orders", "other"] {
        let [code, message, detail, hint] = client.error(&format!("SELECT snowflake_segment_nextval('{tag}')"));
        let expected =
            format!("segment \"{tag}\" has no more numbers on this server, and the registry is not issuing any");
        assert_eq!([code, message], ["55000".into(), expected]);
        assert!(detail.starts_with("Since 20") && detail.contains("cannot connect to the registry"), "{detail}");
        assert!(hint.contains("See view \"snowflake_segments\""), "{hint}");
    }
    // Errors come at once while it is known that the registry is away.
    let begun = Instant::now();
    assert_eq!(client.code(DRAW).as_deref(), Some("55000"));
    assert!(begun.elapsed() < Duration::from_secs(1));
    let shown = "SELECT state || ': ' || last_error FROM snowflake_segments WHERE tag = 'orders'";
    assert_eq!(client.one::<String>(shown), "failing: cannot connect to the registry");
    assert_eq!(server.log().matches("cannot fetch segment numbers").count(), 1, "{}", server.log());
    registry.start();
    assert!(within(SOON, || client.code(DRAW).is_none()), "{}", server.log());
    ledger.push(draw(&mut client, 100));
    check_ledger(&ledger).unwrap();
    assert!(server.log().contains("fetched segment numbers after"), "{}", server.log());
}

/// A session that waits shows what it waits for, holds nothing, and can be cancelled.
#[test]
fn a_session_that_waits_for_a_frozen_registry_can_be_cancelled() {
    let registry = registry("seg_frozen", 100);
    let server = server("seg_frozen_1", &registry).set("snowflake_pg.lease", "12h").start();
    let (mut client, mut watch) = (server.session(), server.connect());
    // The registrar has sent its first heartbeat.
    assert!(within(SOON, || watch.one("SELECT last_heartbeat IS NOT NULL FROM snowflake_status")));
    let frozen = registry.frozen();
    let cancel = client.cancel_token();
    let waiting = thread::spawn(move || client.query(DRAW, &[]).expect_err("it is cancelled"));
    let shown = "SELECT EXISTS (SELECT FROM snowflake_stat_backends WHERE waiting_for = 'segment')";
    assert!(within(SOON, || watch.one(shown)), "{}", server.log());
    let locks = "SELECT count(*) FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid)
                 WHERE a.query LIKE '%segment_nextval%' AND a.pid <> pg_backend_pid() AND l.mode NOT LIKE '%Share%'
                 AND l.locktype <> 'virtualxid'";
    assert_eq!(watch.one::<i64>(locks), 0);
    let begun = Instant::now();
    cancel.cancel_query(postgres::NoTls).expect("the server runs");
    let (code, ..) = sqlstate(&waiting.join().expect("the thread ends"));
    assert_eq!(code, "57014");
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    // Heartbeats and status do not wait for it either.
    assert_eq!(watch.one::<String>("SELECT state FROM snowflake_status"), "idle");
    drop(frozen);
    assert!(within(SOON, || watch.code(DRAW).is_none()), "{}", server.log());
    assert_eq!(watch.one::<String>("SELECT state FROM snowflake_segments"), "drawing");
}

/// A registry that is busy for a while delays no heartbeat by more than a request.
#[test]
fn heartbeats_go_on_while_a_block_cannot_be_fetched() {
    let registry = registry("seg_locked", 100);
    let (server, mut client) = server("seg_locked_1", &registry).start_session();
    draw(&mut client, 1);
    let mut holder = registry.connect();
    holder.run("BEGIN; LOCK TABLE snowflake_registry.segment IN ACCESS EXCLUSIVE MODE");
    let drawing =
        thread::spawn(move || client.query(&format!("{DRAW} FROM generate_series(1, 5000)"), &[]).map(|_| ()));
    let mut watch = server.connect();
    let last = "SELECT last_heartbeat::text FROM snowflake_status";
    let mut beats: Vec<String> = Vec::new();
    assert!(
        within(SOON, || {
            let beat: String = watch.one(last);
            if beats.last() != Some(&beat) {
                beats.push(beat);
            }
            beats.len() > 2
        }),
        "{beats:?}"
    );
    drop(holder);
    let _ = drawing.join().expect("the thread ends");
    assert!(within(SOON, || watch.code(DRAW).is_none()), "{}", server.log());
}
