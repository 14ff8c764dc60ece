//! Sessions that ask for tags that do not exist, and a session that draws from a segment meanwhile.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use cluster::{Answer, Builder, Client, Cluster, assert_caught, ensure, within};

use crate::servers::{SOON, empty_registry, server};

/// How many sessions ask for unknown tags.
const SESSIONS: u64 = 16;

/// How many tags that did not exist a server has looked up when it begins to pause.
const PAUSES: u64 = 150;

/// How many blocks of one number the other session fetches. The registry issues up to 64 in ten minutes.
const BLOCKS: u64 = 40;

fn draw(client: &mut Client, tag: &str) -> Option<String> {
    client.code(&format!("SELECT snowflake_segment_nextval('{tag}')"))
}

/// Creates a segment whose blocks have one number.
fn create(registry: &Cluster, tag: &str) {
    registry.connect().one::<i64>(&format!("SELECT snowflake_registry.create_segment('{tag}', 1, 1, 1)"));
}

/// Sessions ask for one unknown tag after another. Meanwhile, one session fetches blocks of a segment.
fn check(name: &str, change: impl Fn(Builder) -> Builder) -> Result<(), String> {
    let registry = empty_registry(name);
    create(&registry, "orders");
    let (server, mut client) = change(server(&format!("{name}_1"), &registry)).start_session();
    assert_eq!(draw(&mut client, "orders"), None);
    let (ended, refused) = (AtomicBool::new(false), AtomicU64::new(0));
    let count = || refused.load(Ordering::Relaxed);
    let asked = thread::scope(|scope| {
        for session in 0..SESSIONS {
            let (mut client, ended, refused) = (server.connect(), &ended, &refused);
            scope.spawn(move || {
                for n in 0.. {
                    let code = draw(&mut client, &format!("unknown {session} {n}"));
                    refused.fetch_add(u64::from(code.as_deref() == Some("42704")), Ordering::Relaxed);
                    if ended.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
        }
        let pauses = within(SOON, || count() >= PAUSES);
        let before = count();
        let drawn = (0..BLOCKS).all(|_| draw(&mut client, "orders").is_none());
        ended.store(true, Ordering::Relaxed);
        ensure!(pauses && drawn, "{before} unknown tags were refused");
        Ok(count() - before)
    });
    let asked = asked?;
    // Without the pauses, each block comes after the answers to all other sessions.
    ensure!(asked < BLOCKS * SESSIONS / 2, "{asked} unknown tags were looked up while {BLOCKS} blocks were fetched");
    Ok(())
}

/// A server with room for two segments has both of them, and sessions ask for unknown tags.
fn keep(name: &str, change: impl Fn(Builder) -> Builder) -> Result<(), String> {
    let registry = empty_registry(name);
    let (_server, mut client) =
        change(server(&format!("{name}_1"), &registry).set("snowflake_pg.max_segments", "2")).start_session();
    for tag in ["orders", "parcels"] {
        create(&registry, tag);
        assert_eq!(draw(&mut client, tag), None);
    }
    for n in 0..40 {
        assert_eq!(draw(&mut client, &format!("unknown {n}")).as_deref(), Some("42704"));
    }
    let open: Vec<String> = client.all("SELECT tag FROM snowflake_segments WHERE state = 'drawing' ORDER BY tag");
    ensure!(open == ["orders", "parcels"], "the server has only {open:?}");
    Ok(())
}

#[test]
fn unknown_tags_do_not_delay_blocks() {
    check("seg_unknown_many", |builder| builder).unwrap();
}

#[test]
fn a_server_that_asks_for_all_tags_in_turn_is_caught() {
    let fault = |builder: Builder| builder.fault("NewTagsInTurn");
    assert_caught(check("seg_unknown_turn", fault), "unknown tags were looked up while 40 blocks were fetched");
}

#[test]
fn unknown_tags_close_no_segment() {
    keep("seg_unknown_keep", |builder| builder).unwrap();
}

#[test]
fn unknown_tags_in_the_slots_of_segments_are_caught() {
    assert_caught(keep("seg_unknown_close", |builder| builder.fault("NewTagsInTurn")), "the server has only");
}
