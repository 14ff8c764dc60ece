//! Integer keys are migrated while a subscription replicates the rows to another database.

use std::time::Duration;

use cluster::{Answer, assert_caught, ensure, within};

use crate::migration::integer::{CUSTOMER, CUSTOMERS, SMALL};
use crate::migration::large::{CLICK, LARGE};
use crate::migration::page::{AS_WRITTEN, Edit, SectionRun, builder};
use crate::migration::write;

/// Types a section on a publisher while a subscriber in another database of the same server replicates its tables. Checks that
/// rows written before, between and after the steps arrive, and that the subscription never stops. `insert` inserts a row and
/// returns its ID, and `rows` is a query whose result must be the same on both sides.
fn check(title: &str, [tables, insert, published, subscribed, rows]: [&str; 5], edit: Edit) -> Result<(), String> {
    let mut run = SectionRun::of(builder().set("wal_level", "logical").start(), edit);
    let mut here = run.server.session();
    for sql in [
        tables,
        &format!("CREATE PUBLICATION shop FOR TABLE {published}"),
        "SELECT pg_create_logical_replication_slot('copy', 'pgoutput')",
        "CREATE DATABASE copy",
    ] {
        here.batch_execute(sql).expect("a publisher can be made");
    }
    let mut there = run.server.connect_to("copy");
    there.batch_execute(subscribed).expect("tables can be made");
    // The subscription uses an existing slot, because a subscription cannot create a slot in its own server.
    let subscription = format!(
        "CREATE SUBSCRIPTION copy CONNECTION 'host={} dbname=postgres user=postgres' PUBLICATION shop
         WITH (create_slot = false)",
        run.server.socket().display()
    );
    there.batch_execute(&subscription).expect("a subscription");
    let copied = "SELECT count(*) = 0 FROM pg_subscription_rel WHERE srsubstate <> 'r'";
    assert!(within(Duration::from_secs(60), || there.one(copied)), "the rows are not copied");
    run.section(title, |session, _| write(session, &mut Vec::new(), insert))?;
    let sent: String = here.one(rows);
    let mut stopped = None;
    let arrived = within(Duration::from_secs(60), || {
        stopped = run.server.log().lines().find(|line| STOPS.iter().any(|stop| line.contains(stop))).map(String::from);
        stopped.is_some() || there.one::<String>(rows) == sent
    });
    ensure!(stopped.is_none(), "the subscription stopped: {}", stopped.unwrap_or_default());
    ensure!(arrived, "not all rows arrived");
    Ok(())
}

/// The errors with which a subscription can stop, according to the page.
const STOPS: [&str; 2] = ["missing replicated column", "out of range for type integer"];

fn check_small(key: &str) -> Result<(), String> {
    let subscribed = format!(
        "CREATE TABLE customers (id {key} PRIMARY KEY, name text); CREATE TABLE addresses (customer_id {key}, street text)"
    );
    let rows = "SELECT concat(count(*), ' ', max(id)) FROM customers JOIN addresses ON customer_id = id";
    check(SMALL, [CUSTOMERS, CUSTOMER, "customers, addresses", &subscribed, rows], AS_WRITTEN)
}

#[test]
fn a_subscriber_of_a_small_table_is_widened_first() {
    check_small("bigint").unwrap();
    assert_caught(check_small("integer"), "out of range for type integer");
}

fn check_large(published: &str, edit: Edit) -> Result<(), String> {
    let tables = "CREATE TABLE events (id serial PRIMARY KEY, name text);
        CREATE TABLE clicks (id bigserial PRIMARY KEY,
            event_id integer NOT NULL REFERENCES events ON DELETE CASCADE, name text);
        INSERT INTO events (name) SELECT n FROM generate_series(1, 1000) AS n;
        INSERT INTO clicks (event_id, name) SELECT id, name FROM events";
    let subscribed = "CREATE TABLE events (id bigint PRIMARY KEY, name text);
        CREATE TABLE clicks (id bigint PRIMARY KEY, event_id bigint NOT NULL, name text)";
    let rows = "SELECT concat(count(*), ' ',
            md5(string_agg(concat_ws(' ', clicks.id, event_id, events.name), ',' ORDER BY clicks.id)))
        FROM clicks JOIN events ON event_id = events.id";
    check(LARGE, [tables, CLICK, published, subscribed, rows], edit)
}

#[test]
fn a_subscriber_of_a_large_table_sees_the_old_columns_until_the_swap() {
    let edit =
        ("LOCK TABLE events, clicks;", "LOCK TABLE events, clicks; ALTER PUBLICATION shop SET TABLE events, clicks;");
    check_large("events (id, name), clicks (id, event_id, name)", edit).unwrap();
}

#[test]
fn a_publication_of_the_new_columns_is_caught() {
    assert_caught(check_large("events, clicks", AS_WRITTEN), "missing replicated column");
}
