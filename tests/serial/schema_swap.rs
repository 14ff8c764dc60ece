//! The counter is written to the series itself, and the number to the row itself, whatever relation has their name. The owner of a
//! schema, who can rename the schema, cannot replace a table by a relation whose trigger would run with the privileges of another role.

use std::thread;

use cluster::{Answer, Cluster, assert_caught, ensure, sqlstate, waiting};

/// Role `low` owns two schemas, and can rename them. Its trigger function notes which role runs it.
const SCHEMAS: &str = "
    CREATE ROLE low LOGIN; CREATE SCHEMA books AUTHORIZATION low; CREATE SCHEMA fake AUTHORIZATION low;
    CREATE TABLE ran (who name); GRANT INSERT ON ran TO PUBLIC; GRANT CREATE ON DATABASE postgres TO low;
    SET ROLE low; GRANT USAGE ON SCHEMA fake, books TO PUBLIC;
    CREATE FUNCTION fake.caught() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO public.ran VALUES (current_user); RETURN NEW; END $$;
    RESET ROLE";

/// One schema contains the series, and the other one a table that looks like the series.
const SERIES: &str = "
    SELECT snowflake_create_series('books.invoice', 'INV-{n:4}');
    CREATE TABLE invoices (id integer, number text);
    SELECT snowflake_number_at_commit('invoices', 'number', 'books.invoice');
    SET ROLE low;
    CREATE TABLE fake.invoice (period text PRIMARY KEY, last_number bigint);
    CREATE TRIGGER caught BEFORE INSERT ON fake.invoice FOR EACH ROW EXECUTE FUNCTION fake.caught();
    RESET ROLE";

const SWAP: &str = "BEGIN; ALTER SCHEMA books RENAME TO former; ALTER SCHEMA fake RENAME TO books; COMMIT";
const SWAP_BACK: &str = "BEGIN; ALTER SCHEMA books RENAME TO fake; ALTER SCHEMA former RENAME TO books; COMMIT";

/// Swaps the schemas while a session is about to write the counter, once before the session has a plan for the statement and once
/// after. Returns an error if the trigger of the role has run.
fn swap(name: &str, faults: &str) -> Result<(), String> {
    let server = Cluster::builder(name).fault(faults).start();
    let mut owner = server.session();
    owner.run(SCHEMAS);
    owner.run(SERIES);
    let mut low = server.connect_as("low");
    for insert in ["INSERT INTO invoices VALUES (1)", "SELECT snowflake_serial('books.invoice')"] {
        let mut writer = server.session();
        for round in 0..2 {
            owner.run("SELECT pg_advisory_lock(1)");
            let outcome = thread::scope(|scope| {
                let call = scope.spawn(|| writer.batch_execute(insert).map_err(|error| sqlstate(&error)));
                assert!(waiting(&mut server.session(), || false));
                low.run(SWAP);
                owner.run("SELECT pg_advisory_unlock(1)");
                call.join().expect("a call")
            });
            let ran: Vec<String> = owner.all("SELECT who::text FROM ran");
            ensure!(ran.is_empty(), "code of the role ran as {ran:?} in round {round} of {insert}");
            low.run(SWAP_BACK);
            // A plan that the session has not analyzed again still writes to the series.
            let Err((code, message, ..)) = outcome else {
                assert_eq!(round, 1, "the name belongs to a different table");
                continue;
            };
            let expected = "the name of table \"former.invoice\" changed during the call";
            assert_eq!((code.as_str(), message.as_str()), ("40001", expected));
            // The hint, which is to retry, works. Afterwards, the session has a plan.
            writer.run(insert);
        }
    }
    assert_eq!(owner.one::<i64>("SELECT last_number FROM books.invoice"), 4);
    Ok(())
}

/// One schema contains the numbered table, and the other one a view that looks like the table.
const NUMBERED: &str = "
    SELECT snowflake_create_series('invoice', 'INV-{n:4}');
    CREATE TABLE books.invoices (id integer, number text);
    SELECT snowflake_number_at_commit('books.invoices', 'number', 'invoice');
    GRANT INSERT, SELECT, UPDATE (number) ON books.invoices TO low;
    SET ROLE low;
    CREATE VIEW fake.invoices AS SELECT ctid AS ctid, tableoid AS tableoid, id, number FROM books.invoices;
    CREATE TRIGGER caught INSTEAD OF UPDATE ON fake.invoices FOR EACH ROW EXECUTE FUNCTION fake.caught();
    RESET ROLE";

/// Swaps the schemas while a session waits for the counter. Returns an error if the trigger of the view has run.
fn swap_while_waiting(name: &str, fault: Option<&str>) -> Result<(), String> {
    let server = Cluster::builder(name).fault_if(fault).start();
    let mut owner = server.session();
    owner.run(SCHEMAS);
    owner.run(NUMBERED);
    let (mut low, mut writer) = (server.connect_as("low"), server.session());
    low.run("BEGIN; INSERT INTO books.invoices VALUES (1); SET CONSTRAINTS ALL IMMEDIATE");
    let outcome = thread::scope(|scope| {
        let call = scope.spawn(|| writer.code("INSERT INTO books.invoices VALUES (2)"));
        assert!(waiting(&mut owner, || false));
        low.run("ALTER SCHEMA books RENAME TO former; ALTER SCHEMA fake RENAME TO books; COMMIT");
        call.join().expect("a call")
    });
    let ran: Vec<String> = owner.all("SELECT who::text FROM ran");
    ensure!(ran.is_empty(), "code of the role ran as {ran:?}");
    assert_eq!(outcome, None);
    let numbers: Vec<String> = owner.all("SELECT number FROM former.invoices ORDER BY id");
    assert_eq!(numbers, ["INV-0001", "INV-0002"]);
    Ok(())
}

#[test]
fn a_view_with_the_name_of_a_numbered_table_gets_no_number() {
    swap_while_waiting("serial_view", None).unwrap();
}

#[test]
fn a_numbered_table_that_is_found_by_name_is_caught() {
    assert_caught(swap_while_waiting("serial_view_by_name", Some("NameTrusted")), "code of the role ran as");
}

#[test]
fn a_table_with_the_name_of_a_series_does_not_count() {
    swap("serial_swap", "SlowName").unwrap();
}

#[test]
fn a_counter_that_is_found_by_name_is_caught() {
    assert_caught(swap("serial_swap_by_name", "SlowName NameTrusted"), "code of the role ran as");
}
