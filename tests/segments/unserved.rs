//! Segments that the registry cannot serve, and others that it serves meanwhile.

use cluster::{Answer, Cluster, Stop, within};

use crate::servers::{SOON, empty_registry, server, string};

/// One tag that the registry cannot serve does not keep the server from the others.
#[test]
fn an_error_of_one_segment_does_not_delay_the_others() {
    let registry = empty_registry("dense_alone");
    let mut owner = registry.connect();
    for tag in ["locked", "orders"] {
        owner.one::<i64>(&format!("SELECT snowflake_registry.create_segment('{tag}', 1, 10)"));
    }
    let (server, mut client) = server("dense_alone_1", &registry).start_session();
    owner.run("BEGIN; SELECT FROM snowflake_registry.segment WHERE tag = 'locked' FOR UPDATE");
    let locked = "SELECT snowflake_segment_nextval('locked')";
    let [code, message, detail, hint] = client.error(locked);
    assert_eq!([code, message], ["55P03", "segment \"locked\" is locked in the registry"]);
    assert_eq!(detail, "The server has waited for the lock, and will retry.");
    assert!(hint.starts_with("In the database of the registry, find the session"), "{hint}");
    for _ in 0..3 {
        assert_eq!(client.error(locked)[0], "55P03");
        client.run("SELECT snowflake_segment_nextval('orders') FROM generate_series(1, 50)");
    }
    assert!(!server.log().contains("cannot fetch segment numbers"), "{}", server.log());
    assert!(server.log().contains("segment \"locked\" is locked in the registry"), "{}", server.log());
    let state = "SELECT state || ': ' || last_error FROM snowflake_segments WHERE tag = 'locked'";
    assert_eq!(client.one::<String>(state), "failing: another session has locked the segment in the registry");
    // The hint works.
    owner.run("ROLLBACK");
    assert!(within(SOON, || client.code(locked).is_none()), "{}", server.log());
}

#[test]
fn a_tag_that_the_registry_cannot_store_does_not_delay_the_others() {
    let host = Cluster::builder("dense_latin").start();
    host.connect().run("CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'");
    let mut owner = host.connect_to("latin");
    owner.run(
        "CREATE EXTENSION snowflake_registry; SELECT snowflake_registry.create_fleet('41:10:12');
         SELECT snowflake_registry.create_segment('orders', 1, 10)",
    );
    let latin = string(&host).replace("dbname=postgres", "dbname=latin");
    let (_server, mut client) = server("dense_latin_1", &host).set("snowflake_pg.registry", &latin).start_session();
    for _ in 0..3 {
        let [code, message, detail, hint] = client.error("SELECT snowflake_segment_nextval('日')");
        assert_eq!(code, "22P05", "{message}");
        assert!(message.starts_with("the registry cannot store tag"), "{message}");
        assert_eq!(
            detail,
            "The tag contains a character that the encoding of the registry's database cannot represent."
        );
        assert!(hint.starts_with("Use a tag that consists of ASCII characters only"), "{hint}");
        client.run("SELECT snowflake_segment_nextval('orders') FROM generate_series(1, 50)");
    }
    assert_eq!(client.one::<String>("SELECT state FROM snowflake_segments WHERE tag = '日'"), "failing");
}

#[test]
fn a_registry_that_cannot_create_a_segment_serves_the_others() {
    let registry = empty_registry("dense_error");
    let mut owner = registry.connect();
    owner.one::<i64>("SELECT snowflake_registry.create_segment('orders', 1, 10)");
    owner.run("ALTER TABLE snowflake_registry.segment ADD CONSTRAINT none CHECK (begins_at IS NULL)");
    let (server, mut client) = server("dense_error_1", &registry).start_session();
    client.run("SELECT snowflake_create_series('ticket', 'T-{YYYY}-{n:7}', kind => 'dense')");
    let next = "SELECT snowflake_serial('ticket', date '2026-03-01')";
    for _ in 0..2 {
        let [code, message, detail, hint] = client.error(next);
        assert_eq!([code, message], ["55000", "the registry has not created segment \"series public.ticket 2026\""]);
        assert_eq!(detail, "The registry raised an error, which was written to the server log.");
        assert!(hint.starts_with("Correct the cause"), "{hint}");
        client.run("SELECT snowflake_segment_nextval('orders') FROM generate_series(1, 50)");
    }
    let said = "cannot create segment \"series public.ticket 2026\": the registry raised an error";
    assert!(server.log().contains(said), "{}", server.log());
    // The hint works.
    owner.run("ALTER TABLE snowflake_registry.segment DROP CONSTRAINT none");
    assert_eq!(client.one::<String>(next), "T-2026-0000001");
}

#[test]
fn a_server_without_a_registrar_says_what_to_do() {
    let registry = empty_registry("dense_no_worker");
    registry.connect().one::<i64>("SELECT snowflake_registry.create_segment('orders', 1, 10)");
    let (mut server, mut client) =
        server("dense_no_worker_1", &registry).set("max_worker_processes", "1").start_session();
    let next = "SELECT snowflake_segment_nextval('orders')";
    let [code, message, detail, hint] = client.error(next);
    assert_eq!([code, message], ["55000", "segment \"orders\" has no numbers on this server"]);
    assert_eq!(detail, "Background worker \"snowflake_pg registrar\" is not responding.");
    assert!(
        hint.starts_with("Check that the background worker is running: increase \"max_worker_processes\""),
        "{hint}"
    );
    // The hint works.
    server.set("max_worker_processes", "8");
    server.restart(Stop::Fast);
    let mut client = server.connect();
    assert!(within(SOON, || client.code(next).is_none()), "{}", server.log());
}
