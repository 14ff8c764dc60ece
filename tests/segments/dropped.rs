//! Segments that are dropped and created again.

use cluster::{Answer, Builder, assert_caught, ensure, within};

use crate::servers::{DRAW, SOON, check_ledger, create, draw, drop_segment, registry, server, wait_for_log};

/// What a server logs about a segment of which it holds a block, and which the registry does not know.
const GONE: &str = "segment \"orders\" no longer exists";

/// A segment is dropped and created again while a server holds a block of it. After a heartbeat, two servers draw from the new one.
fn check(name: &str, change: impl Fn(Builder) -> Builder) -> Result<(), String> {
    let registry = registry(name, 1_000);
    let holding = change(server(&format!("{name}_1"), &registry)).start();
    let other = server(&format!("{name}_2"), &registry).start();
    let mut client = holding.session();
    assert_eq!(draw(&mut client, 3), [1, 2, 3]);
    drop_segment(&registry, "orders");
    create(&registry, "orders", 1_000);
    let mut ledger = vec![draw(&mut other.session(), 10)];
    ensure!(ledger[0] == (1..=10).collect::<Vec<_>>(), "the new segment begins with {:?}", ledger[0]);
    // Heartbeats are a second apart. One can come before the segment is created again.
    let told = ["segment \"orders\" was created again", GONE];
    let discarded = within(SOON, || told.iter().any(|told| holding.log().contains(told)));
    ledger.push(draw(&mut client, 10));
    check_ledger(&ledger)?;
    ensure!(discarded, "the server has not discarded its block");
    Ok(())
}

#[test]
fn a_server_does_not_go_on_in_a_segment_that_was_dropped() {
    check("seg_dropped", |builder| builder).unwrap();
}

#[test]
fn a_generation_that_is_ignored_is_caught() {
    assert_caught(check("seg_generation", |builder| builder.fault("GenerationIgnored")), "numbers came twice");
}

/// The server asks for a block of the new segment before a heartbeat has told it. Heartbeats are a minute apart.
#[test]
fn a_server_learns_of_another_generation_with_its_next_block() {
    let registry = registry("seg_learns", 10);
    let (server, mut client) = server("seg_learns_1", &registry).set("snowflake_pg.lease", "12h").start_session();
    assert_eq!(draw(&mut client, 3), [1, 2, 3]);
    drop_segment(&registry, "orders");
    create(&registry, "orders", 1_000);
    // The first half of the old block, whose middle asks for the next one.
    let mut numbers = Vec::new();
    assert!(
        within(SOON, || {
            numbers.extend(draw(&mut client, 1));
            numbers.last() == Some(&1)
        }),
        "{numbers:?}"
    );
    assert!(numbers.len() <= 8, "{numbers:?}");
    wait_for_log(&server, "segment \"orders\" was created again");
    assert_eq!(draw(&mut client, 3), [2, 3, 4]);
}

#[test]
fn a_segment_that_was_dropped_is_unknown_after_a_heartbeat() {
    let registry = registry("seg_gone", 1_000);
    let (server, mut client) = server("seg_gone_1", &registry).start_session();
    assert_eq!(draw(&mut client, 3), [1, 2, 3]);
    drop_segment(&registry, "orders");
    assert!(within(SOON, || client.code(DRAW).is_some_and(|code| code == "42704")), "{}", server.log());
    // The server cannot know whether the segment was dropped, or its creation was lost.
    wait_for_log(&server, GONE);
    create(&registry, "orders", 10);
    assert_eq!(draw(&mut client, 3), [1, 2, 3]);
}
