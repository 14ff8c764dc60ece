//! Every error of a session that draws, and that its hint works.

use cluster::{Answer, Client, Cluster, Stop, within};

use crate::servers::{DRAW, SOON, create, registry, server, string};

fn refused(client: &mut Client, tag: &str) -> [String; 4] {
    client.error(&format!("SELECT snowflake_segment_nextval({tag})"))
}

#[test]
fn a_segment_that_does_not_exist_is_named() {
    let registry = registry("seg_unknown", 10);
    let (_server, mut client) = server("seg_unknown_1", &registry).start_session();
    for _ in 0..2 {
        let [code, message, detail, hint] = refused(&mut client, "'invoices'");
        assert_eq!([code, message, detail], ["42704", "segment \"invoices\" does not exist", ""]);
        assert_eq!(
            hint,
            "In the database of the registry, run SELECT snowflake_registry.create_segment(tag) as the owner of the \
             registry."
        );
    }
    assert_eq!(
        client.one::<String>("SELECT state || ': ' || last_error FROM snowflake_segments"),
        "refused: the segment does not exist"
    );
    // The hint works.
    registry.connect().one::<i64>("SELECT snowflake_registry.create_segment('invoices')");
    assert_eq!(client.one::<i64>("SELECT snowflake_segment_nextval('invoices')"), 1);
}

#[test]
fn a_tag_has_one_to_two_hundred_bytes() {
    let registry = registry("seg_length", 10);
    create(&registry, &"é".repeat(100), 10);
    create(&registry, "with \"quotes\" and \\ and {}, ''too''", 10);
    let (server, mut client) = server("seg_length_1", &registry).start_session();
    for (tag, bytes) in [("''", 0), ("repeat('x', 201)", 201), ("repeat('é', 101)", 202)] {
        let [code, message, detail, hint] = refused(&mut client, tag);
        assert_eq!([code, message], ["22023", "invalid tag length"]);
        assert_eq!(
            [detail, hint],
            [format!("The tag has {bytes} bytes in UTF-8."), "Pass a tag of 1 to 200 bytes.".into()]
        );
    }
    assert_eq!(client.one::<i64>("SELECT snowflake_segment_nextval(repeat('é', 100))"), 1);
    assert_eq!(client.one::<i64>("SELECT snowflake_segment_nextval('with \"quotes\" and \\ and {}, ''too''')"), 1);
    // Both are reported with the next heartbeats.
    let beats = "SELECT last_heartbeat::text FROM snowflake_status";
    let first: String = client.one(beats);
    assert!(within(SOON, || client.one::<String>(beats) != first));
    assert!(!server.log().contains("cannot report"), "{}", server.log());
    assert_eq!(client.one::<i64>("SELECT snowflake_segment_nextval(repeat('é', 100))"), 2);
    assert_eq!(client.one::<Option<i64>>("SELECT snowflake_segment_nextval(NULL)"), None);
    // The same tag in another encoding.
    client.run("CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'");
    let mut latin = server.connect_to("latin");
    latin.run("CREATE EXTENSION snowflake_pg");
    assert_eq!(latin.one::<i64>("SELECT snowflake_segment_nextval(repeat('é', 100))"), 3);
    assert_eq!(latin.one::<String>("SELECT tag FROM snowflake_segments WHERE tag LIKE '?%'"), "?".repeat(100));
}

#[test]
fn a_server_without_a_registry_says_what_to_do() {
    let (mut server, mut client) = Cluster::builder("seg_without").start_session();
    let [code, message, detail, hint] = refused(&mut client, "'orders'");
    assert_eq!([code, message], ["55000", "this server has no registry"]);
    assert_eq!(detail, "Segment numbers come from a registry, which can be in a database of this server.");
    assert!(hint.starts_with("Create a registry, remove \"snowflake_pg.worker_id\""), "{hint}");
    assert_eq!(client.one::<i64>("SELECT count(*) FROM snowflake_segments"), 0);
    // The hint works.
    server.create_fleet("41:10:12");
    create(&server, "orders", 10);
    server.unset("snowflake_pg.worker_id");
    let registry = string(&server);
    server.set("snowflake_pg.registry", &registry);
    server.restart(Stop::Fast);
    assert_eq!(server.connect().one::<i64>(DRAW), 1);
}

#[test]
fn a_standby_draws_nothing_and_goes_on_after_its_promotion() {
    let registry = registry("seg_standby", 10);
    let mut primary = server("seg_standby_1", &registry).start();
    assert_eq!(primary.session().one::<i64>(DRAW), 1);
    let standby = primary.standby(server("seg_standby_2", &registry).set("hot_standby", "on"));
    let mut client = standby.connect();
    assert!(within(SOON, || client.code("SELECT 'snowflake_segment_nextval'::regproc").is_none()));
    let [code, message, _, hint] = refused(&mut client, "'orders'");
    assert_eq!([code, message], ["25006", "cannot draw a number from a segment during recovery"]);
    assert_eq!(hint, "Run the statement on the primary.");
    primary.stop(Stop::Immediate);
    standby.promote();
    // The block of the primary is a hole.
    assert_eq!(client.one::<i64>(DRAW), 11);
}

#[test]
fn a_segment_at_its_end_says_so() {
    let registry = registry("seg_end", 10);
    let sql = "SELECT snowflake_registry.create_segment('last', 9223372036854775805, 1)";
    registry.connect().one::<i64>(sql);
    let (_server, mut client) = server("seg_end_1", &registry).start_session();
    assert_eq!(client.one::<i64>("SELECT snowflake_segment_nextval('last')"), i64::MAX - 2);
    assert_eq!(client.one::<i64>("SELECT snowflake_segment_nextval('last')"), i64::MAX - 1);
    let [code, message, detail, hint] = refused(&mut client, "'last'");
    assert_eq!([code, message], ["2200H", "segment \"last\" has issued its last number"]);
    assert_eq!([detail, hint], ["The largest number is 9223372036854775806.", "Create another segment."]);
}

#[test]
fn a_segment_that_gives_out_too_many_numbers_waits() {
    let registry = registry("seg_window", 10);
    registry.connect().one::<i64>("SELECT snowflake_registry.create_segment('short', 1, 1, 1)");
    let (server, mut client) = server("seg_window_1", &registry).start_session();
    for number in 1..=64 {
        assert_eq!(client.one::<i64>("SELECT snowflake_segment_nextval('short')"), number);
    }
    let [code, message, detail, hint] = refused(&mut client, "'short'");
    assert_eq!([code, message], ["53400", "segment \"short\" has issued too many numbers in a short time"]);
    assert!(detail.starts_with("The registry will issue the next numbers at 20"), "{detail}");
    assert!(hint.contains("call snowflake_registry.recreate_segment(tag, max_step => ..)"), "{hint}");
    // Other segments are not held up.
    assert_eq!(client.one::<i64>(DRAW), 1);
    // The hint works.
    let again = "SELECT snowflake_registry.recreate_segment('short', max_step => 1000)";
    registry.connect().run(again);
    let next = "SELECT snowflake_segment_nextval('short')";
    assert!(within(SOON, || client.code(next).is_none()), "{}", server.log());
    assert_eq!(client.one::<i64>(next), 66);
}
