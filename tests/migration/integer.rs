//! From integer keys, small tables in place and large ones by new columns.

use cluster::{Answer, assert_caught, ensure};

use crate::page::{Edit, Run};
use crate::{check_order, filenode, write};

pub fn check_small_integer(edit: Edit) -> Result<usize, String> {
    let tables = "CREATE TABLE customers (id serial PRIMARY KEY, name text);
         CREATE TABLE addresses (customer_id integer NOT NULL REFERENCES customers, street text);
         INSERT INTO customers (name) SELECT 'old' FROM generate_series(1, 1000);
         INSERT INTO addresses SELECT id FROM customers";
    let mut run = Run::on(edit, tables);
    let add = "WITH new AS (INSERT INTO customers (name) VALUES ('live') RETURNING id),
        address AS (INSERT INTO addresses SELECT id FROM new) SELECT id::bigint FROM new";
    let mut ids = Vec::new();
    run.section("Small tables with integer keys", |session, _| write(session, &mut ids, add))?;
    check_order(&ids)?;
    let mut session = run.server.connect();
    let joined: i64 = session.one("SELECT count(*) FROM customers JOIN addresses ON customer_id = id");
    ensure!(joined == 1002, "{joined} of 1002 addresses have a customer");
    ensure!(session.code("INSERT INTO addresses VALUES (0)").as_deref() == Some("23503"), "the foreign key is lost");
    Ok(run.blocks)
}

#[test]
fn a_key_that_stays_an_integer_is_caught() {
    let edit = ("ALTER COLUMN id TYPE bigint, ALTER COLUMN id SET", "ALTER COLUMN id SET");
    assert_caught(check_small_integer(edit).map(drop), "integer out of range");
}

/// The tables stay in their files, are written to throughout, and no row or reference is lost.
pub fn check_large_integer(edit: Edit) -> Result<usize, String> {
    let tables = "CREATE TABLE events (id serial PRIMARY KEY, name text);
         CREATE TABLE clicks (id serial PRIMARY KEY, event_id integer NOT NULL REFERENCES events, name text);
         INSERT INTO events (name) SELECT n FROM generate_series(1, 25000) AS n;
         INSERT INTO clicks (event_id, name) SELECT id, name FROM events";
    let mut run = Run::on(edit, tables);
    let mut session = run.server.connect();
    let files = ["events", "clicks"].map(|table| filenode(&mut session, table));
    let mut ids = Vec::new();
    let click = "WITH new AS (INSERT INTO events (name) VALUES ('live') RETURNING id),
        click AS (INSERT INTO clicks (event_id, name) SELECT id, 'live' FROM new) SELECT id::bigint FROM new";
    let written =
        run.busy_section("Large tables with integer keys", click, |session, _| write(session, &mut ids, click))?;
    ensure!(["events", "clicks"].map(|table| filenode(&mut session, table)) == files, "a table was rewritten");
    check_order(&ids)?;
    let wrong: i64 = session.one(
        "SELECT count(*) FROM events LEFT JOIN clicks ON event_id = events.id
         WHERE clicks.name IS DISTINCT FROM events.name OR events.name <> 'live' AND events.name::int <> events.id",
    );
    ensure!(wrong == 0, "{wrong} clicks belong to another event");
    let kept: i64 = session.one("SELECT count(*) FROM clicks JOIN events ON events.id = event_id");
    ensure!(kept == 25_000 + (ids.len() + written) as i64, "{kept} clicks are left");
    ensure!(session.code("INSERT INTO clicks (event_id) VALUES (0)").as_deref() == Some("23503"), "no foreign key");
    ensure!(session.code("INSERT INTO events (id) VALUES (1)").as_deref() == Some("23505"), "no primary key");
    Ok(run.blocks)
}

#[test]
fn rows_that_no_trigger_fills_are_caught() {
    let edit =
        ("CREATE TRIGGER widen BEFORE INSERT OR UPDATE ON events", "CREATE TRIGGER widen BEFORE UPDATE ON events");
    assert_caught(check_large_integer(edit).map(drop), "check constraint \"new_id_filled\"");
}

#[test]
fn a_large_table_that_is_rewritten_is_caught() {
    let edit = ("new_event_id bigint;", "new_event_id bigint, ALTER COLUMN name TYPE varchar(9);");
    assert_caught(check_large_integer(edit).map(drop), "a table was rewritten");
}
