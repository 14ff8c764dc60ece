//! The guard of a table on a server with a registry: it refuses only the IDs of the server's grant. The server that had the worker ID
//! before issued the IDs below, and the next one issues the IDs above.

use cluster::{Answer, Cluster, Stop, assert_caught, ensure, within};

use crate::fleet::{NARROW, SOON, renewed, server, string, wait_for_log};

/// A row below the grant, a row above it, and a row of the grant arrive from another server.
fn check_grant(name: &str, fault: Option<&str>) -> Result<(), String> {
    // A server gets the only worker ID, and its grant has ended long ago.
    let registry = Cluster::builder(&format!("{name}_registry")).clock("-1300").start_registry(NARROW);
    let like = |n: u32, clock: &str| {
        server(&format!("{name}_{n}"), &string(&registry)).set("snowflake_pg.layout", NARROW).clock(clock)
    };
    let mut before = like(1, "-1300").start();
    renewed(&registry, &before);
    before.stop(Stop::Fast);
    registry.set_clock("+0");
    let server = like(2, "+0").set("wal_retrieve_retry_interval", "200ms").fault_if(fault).start();
    renewed(&registry, &server);
    let publisher = Cluster::builder(&format!("{name}_3")).set("wal_level", "logical").start();
    let table = "CREATE EXTENSION IF NOT EXISTS snowflake_pg; CREATE TABLE orders (id bigint PRIMARY KEY, what text)";
    server.connect().batch_execute(table).expect("a superuser may");
    publisher.connect().batch_execute(table).expect("a superuser may");
    publisher.connect().batch_execute("CREATE PUBLICATION rows FOR TABLE orders").expect("a superuser may");

    // The guard is older than the grant, for example because it was restored from a dump.
    let mut client = server.connect();
    let id = |before: &str| format!("snowflake_min_id(now() - interval '{before}')");
    let (first, late): (i64, i64) =
        (client.one(&format!("SELECT {}", id("1200 s"))), client.one(&format!("SELECT {}", id("1000 s"))));
    let guard = format!(
        "CREATE TRIGGER snowflake_guard BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION snowflake_guard_row('id', '{first}');
         SELECT snowflake_guard('orders')"
    );
    client.batch_execute(&guard).expect("a superuser may");
    let start: i64 = registry.connect().one("SELECT start FROM snowflake_registry.node");
    assert!(late < start, "{late} {start}");
    let own = start + 1;
    let later: i64 = client.one("SELECT snowflake_min_id(granted_until + interval '1 day') FROM snowflake_status");

    let socket = publisher.socket().display();
    let connection = format!("host={socket} port=5432 user=postgres dbname=postgres");
    let subscribe =
        format!("CREATE SUBSCRIPTION sub CONNECTION '{connection}' PUBLICATION rows WITH (copy_data = false)");
    client.batch_execute(&subscribe).expect("a superuser may");
    let (count, refusals) = ("SELECT count(*) FROM orders", "SELECT guard_refusals FROM snowflake_status");
    for (row, arrives) in [(late, true), (later, true), (own, false)] {
        let before: i64 = client.one(count);
        publisher.connect().execute("INSERT INTO orders VALUES ($1)", &[&row]).expect("a row");
        let done = within(SOON, || client.one::<i64>(count) > before || client.one::<i64>(refusals) > 0);
        ensure!(done, "nothing happens:\n{}", server.log());
        ensure!((client.one::<i64>(refusals) == 0) == arrives, "row {row} arrives: {}", !arrives);
    }
    assert_eq!(client.one::<i64>("SELECT last_guard_refusal_id FROM snowflake_status"), own);
    wait_for_log(&server, &format!("only if their IDs are below {start}"));
    Ok(())
}

#[test]
fn rows_of_earlier_and_later_holders_of_the_worker_id_pass() {
    check_grant("guard_grant", None).unwrap();
}

#[test]
fn a_guard_that_does_not_know_the_grant_is_caught() {
    assert_caught(check_grant("guard_unguarded", Some("GrantUnguarded")), "arrives: false");
}
