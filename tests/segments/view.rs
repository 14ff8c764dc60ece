//! What the view shows.

use cluster::{Answer, within};

use crate::servers::{SOON, draw, registry, server};

#[test]
fn the_view_shows_the_segments_of_a_server() {
    let registry = registry("seg_view", 100);
    let (_server, mut client) = server("seg_view_1", &registry).start_session();
    assert_eq!(client.one::<i64>("SELECT count(*) FROM snowflake_segments"), 0);
    draw(&mut client, 10);
    let shown = "SELECT concat_ws(' ', tag, state, next_number, numbers_left, step, fetches, waits, last_error) FROM snowflake_segments";
    assert_eq!(client.one::<String>(shown), "orders drawing 11 90 100 1 1");
    // The generation is the one of the registry.
    let generation: i64 = registry.connect().one("SELECT generation FROM snowflake_registry.segment");
    assert_eq!(client.one::<i64>("SELECT generation FROM snowflake_segments"), generation);
    assert!(client.one::<bool>("SELECT rate > 0 AND lasts > '0 s' FROM snowflake_segments"));
    // The next block, which is twice as long, is fetched when half of the first one is drawn.
    draw(&mut client, 50);
    assert!(
        within(SOON, || client.one::<String>(shown) == "orders drawing 61 240 200 2 1"),
        "{}",
        client.one::<String>(shown)
    );
    // The rate falls while nobody draws.
    let rate: f64 = client.one("SELECT rate FROM snowflake_segments");
    assert!(within(SOON, || client.one::<f64>("SELECT rate FROM snowflake_segments") < rate / 2.0));
    let next: i64 = client.one("SELECT next_number FROM snowflake_segments");
    assert_eq!(draw(&mut client, 1), [next]);
}
