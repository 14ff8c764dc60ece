//! `snowflake_check`, `snowflake_serial_gaps`, `snowflake_alter_series` and `snowflake_set_mark` read the table that was passed, even if
//! the table or its schema is renamed meanwhile.

use std::thread;

use cluster::{Answer, Cluster, assert_caught, ensure, sqlstate, waiting};

/// While a call waits for its table, the table is renamed, and a table without rows takes the name.
#[test]
fn a_table_that_is_renamed_during_the_wait_is_the_one_that_is_read() {
    let (server, mut session) = Cluster::builder("check_renamed").start_session();
    session.run("SELECT snowflake_create_series('invoice', 'N-{n:4}')");
    session.run("SELECT snowflake_serial('invoice'), snowflake_serial('invoice')");
    for (call, expected) in [
        ("SELECT count(*) FROM snowflake_check(ORDERS)", Ok(1)),
        (
            "SELECT sum(last_number - first_number + 1)::bigint FROM snowflake_serial_gaps(ORDERS, 'number', 'invoice')",
            Ok(1),
        ),
        ("SELECT snowflake_set_mark(1, ORDERS)", Err("55000".to_string())),
    ] {
        session.run(
            "DROP TABLE IF EXISTS orders, former; CREATE TABLE orders (id bigint, number text);
             INSERT INTO orders SELECT snowflake_nextval(), 'N-0001'; INSERT INTO orders SELECT id FROM orders;
             CREATE TABLE other (LIKE orders)",
        );
        let oid: i64 = session.one("SELECT 'orders'::regclass::oid::bigint");
        let call = call.replace("ORDERS", &format!("{oid}::regclass"));
        session.run("BEGIN; LOCK TABLE orders");
        let mut caller = server.session();
        let outcome = thread::scope(|scope| {
            let caller = scope.spawn(|| caller.query_one(&call, &[]).map(|row| row.get::<_, i64>(0)));
            assert!(waiting(&mut server.session(), || caller.is_finished()), "{call} does not wait");
            session.run("ALTER TABLE orders RENAME TO former; ALTER TABLE other RENAME TO orders; COMMIT");
            caller.join().expect("a caller")
        });
        assert_eq!(outcome.map_err(|error| sqlstate(&error).0), expected, "{call}");
    }
}

/// Two schemas contain a table of duplicate IDs and a series, and tables that look like them but are empty.
const SCHEMAS: &str = "
    CREATE SCHEMA books; CREATE SCHEMA fake;
    CREATE TABLE books.orders AS SELECT snowflake_nextval() AS id, 'N-0002' AS number; INSERT INTO books.orders TABLE books.orders;
    SELECT snowflake_create_series('books.invoice', 'N-{n:4}'); INSERT INTO books.invoice VALUES ('', 200);
    CREATE TABLE fake.orders (LIKE books.orders); CREATE TABLE fake.invoice (LIKE books.invoice)";

/// Swaps the schemas after a function has read the name of a table, and before the function reads the table. Returns an error if the
/// function has read the other table.
fn swap(name: &str, faults: &str) -> Result<(), String> {
    let server = Cluster::builder(name).fault(faults).start();
    let mut owner = server.session();
    owner.run(SCHEMAS);
    for (call, code) in [
        ("SELECT snowflake_check('books.orders')", None),
        ("SELECT snowflake_serial_gaps('books.orders', 'number', 'books.invoice')", None),
        ("SELECT snowflake_alter_series('books.invoice', start => 5)", Some("55000")),
        ("SELECT snowflake_alter_series('books.invoice', 'N-{n:2}')", Some("2200H")),
        ("SELECT snowflake_set_mark(1, 'books.orders')", Some("55000")),
    ] {
        owner.run("SELECT pg_advisory_lock(1)");
        let mut caller = server.session();
        let outcome = thread::scope(|scope| {
            let called = scope.spawn(|| caller.batch_execute(call).map_err(|error| sqlstate(&error)));
            assert!(waiting(&mut server.session(), || called.is_finished()), "{call} does not wait");
            owner.run("BEGIN; ALTER SCHEMA books RENAME TO former; ALTER SCHEMA fake RENAME TO books; COMMIT");
            owner.run("SELECT pg_advisory_unlock(1)");
            called.join().expect("a call")
        });
        owner.run("BEGIN; ALTER SCHEMA books RENAME TO fake; ALTER SCHEMA former RENAME TO books; COMMIT");
        ensure!(outcome.is_err(), "{call} has read the other table");
        let (found, message, ..) = outcome.unwrap_err();
        assert_eq!(found, "40001", "{call}: {message}");
        let expected =
            ["orders", "invoice"].map(|table| format!("the name of table \"former.{table}\" changed during the call"));
        assert!(expected.contains(&message), "{call}: {message}");
        // The hint, which is to retry, works.
        assert_eq!(caller.code(call).as_deref(), code, "{call}");
    }
    Ok(())
}

#[test]
fn a_table_in_a_schema_of_the_same_name_is_not_read() {
    swap("renamed_schema", "SlowName").unwrap();
}

#[test]
fn a_table_that_is_read_by_name_is_caught() {
    assert_caught(swap("renamed_schema_by_name", "SlowName NameTrusted"), "has read the other table");
}
