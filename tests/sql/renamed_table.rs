//! `snowflake_check`, `snowflake_serial_gaps` and `snowflake_set_mark` read the table that was passed, even if it is renamed while they
//! wait for it.

use std::thread;

use cluster::{Answer, Cluster, sqlstate, waiting};

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
