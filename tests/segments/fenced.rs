//! A server of which there is a copy: both hold the same blocks.

use cluster::{Answer, Boot, Stop};

use crate::servers::{DRAW, draw, next_value, registry, server, wait_for_log};

#[test]
fn a_server_that_is_fenced_draws_nothing_more_and_gives_nothing_back() {
    let registry = registry("seg_fenced", 100);
    let machine = Boot::new("seg_fenced");
    let (mut server, mut client) = server("seg_fenced_1", &registry).on(&machine).start_session();
    assert_eq!(draw(&mut client, 10), (1..=10).collect::<Vec<_>>());
    // For the registry, this is a copy that has renewed the grant.
    let copied = "UPDATE snowflake_registry.node SET nonce = gen_random_uuid(), count = count + 1";
    registry.connect().run(copied);
    wait_for_log(&server, "a copy of this server uses worker ID 0");
    let [code, message, ..] = client.error(DRAW);
    assert_eq!([code, message], ["55000", "a copy of this server uses worker ID 0"]);
    // The copy has the rest of the block.
    server.restart(Stop::Fast);
    assert_eq!(draw(&mut server.connect(), 1), [101]);
    assert!(next_value(&registry, "orders") > 200);
}
