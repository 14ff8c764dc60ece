//! The owner of a numbered table needs the privilege TRIGGER on the series for each row, as the owner of a table with a foreign key needs
//! privileges. The trigger names the series that the caller has passed, whatever other sessions do meanwhile.

use std::thread;

use cluster::{Answer, Client, Cluster, assert_caught, ensure, sqlstate, waiting};

const OBJECTS: &str = "
    CREATE ROLE branch LOGIN; CREATE SCHEMA branch AUTHORIZATION branch; CREATE SCHEMA books;
    GRANT USAGE ON SCHEMA books TO branch;
    SELECT snowflake_create_series('books.invoice', 'INV-{n:4}');
    SET ROLE branch;
    CREATE TABLE branch.invoices (id integer, number text);
    CREATE TABLE branch.regions (region text, id integer, number text) PARTITION BY LIST (region);
    RESET ROLE;
    CREATE TABLE branch.north PARTITION OF branch.regions FOR VALUES IN ('north') PARTITION BY LIST (id);
    CREATE TABLE branch.north_1 PARTITION OF branch.north FOR VALUES IN (1)";

fn start(name: &str, fault: Option<&str>) -> Cluster {
    Cluster::builder(name).fault_if(fault).start()
}

/// Both for a superuser who makes the trigger for the owner, and for a privilege that is revoked later.
#[test]
fn the_owner_of_a_table_needs_the_privilege_for_each_row() {
    let (server, mut owner) = Cluster::builder("serial_owners").start_session();
    owner.run(OBJECTS);
    let mut branch = server.connect_as("branch");
    let grant = "GRANT TRIGGER ON books.invoice TO branch";
    let check = |client: &mut Client, sql: &str, table: &str| {
        let [code, message, detail, hint] = client.error(sql);
        assert_eq!(
            [code, message],
            [
                "42501".into(),
                format!("the owner of table \"branch.{table}\" is not allowed to use series \"books.invoice\"")
            ]
        );
        assert_eq!(detail, "Role \"branch\" does not have the TRIGGER privilege on the series.");
        assert_eq!(hint, format!("As the owner of the series, run {grant}."));
    };
    for (table, row) in [("invoices", "(id) VALUES (1)"), ("regions", "(region, id) VALUES ('north', 1)")] {
        let number = format!("SELECT snowflake_number_at_commit('branch.{table}', 'number', 'books.invoice')");
        let insert = format!("INSERT INTO branch.{table} {row}");
        check(&mut owner, &number, table);
        check(&mut branch, &number, table);
        // The hint works.
        owner.run(grant);
        owner.run(&number);
        branch.run(&insert);
        owner.run("REVOKE TRIGGER ON books.invoice FROM branch");
        check(&mut branch, &insert, table);
        // The privileges of the role that inserts the row do not count.
        check(&mut owner, &insert, table);
        owner.run(grant);
        branch.run(&insert);
        owner.run("REVOKE TRIGGER ON books.invoice FROM branch");
    }
    let last: i64 = owner.one("SELECT last_number FROM books.invoice");
    assert_eq!(last, 4, "a number was drawn without the privilege");
}

/// Returns an error if a row is numbered after the privilege was revoked.
fn revoke(name: &str, fault: Option<&str>) -> Result<(), String> {
    let server = start(name, fault);
    let mut owner = server.session();
    owner.run(OBJECTS);
    owner.run(
        "GRANT TRIGGER ON books.invoice TO branch;
         SELECT snowflake_number_at_commit('branch.invoices', 'number', 'books.invoice');
         REVOKE TRIGGER ON books.invoice FROM branch",
    );
    let code = server.connect_as("branch").code("INSERT INTO branch.invoices (id) VALUES (1)");
    ensure!(code.as_deref() == Some("42501"), "the row was numbered: {code:?}");
    Ok(())
}

#[test]
fn a_privilege_that_was_revoked_numbers_nothing() {
    revoke("serial_revoked", None).unwrap();
}

#[test]
fn an_owner_who_is_trusted_is_caught() {
    assert_caught(revoke("serial_trusted", Some("TableOwnerTrusted")), "the row was numbered: None");
}

/// What other sessions do while the call waits for a session that reads the table.
fn while_it_waits(server: &Cluster, others: &str) -> (Result<(), String>, Option<String>) {
    let mut reader = server.session();
    reader.run("BEGIN; SELECT FROM branch.invoices");
    thread::scope(|scope| {
        // The call drops the former triggers, for which it waits.
        let call = scope.spawn(|| {
            let number = "SELECT snowflake_number_at_commit('branch.invoices', 'number', 'books.invoice')";
            server.session().batch_execute(number).map_err(|error| sqlstate(&error).0)
        });
        assert!(waiting(&mut server.session(), || false));
        let mut client = server.session();
        client.run("SET lock_timeout = '1s'");
        let code = client.code(others);
        reader.run("COMMIT");
        (call.join().expect("a call"), code)
    })
}

/// Returns an error if the trigger names a different series than the one that was passed.
fn rename(name: &str, fault: Option<&str>) -> Result<(), String> {
    let server = start(name, fault);
    let mut owner = server.session();
    owner.run(OBJECTS);
    owner.run("GRANT TRIGGER ON books.invoice TO branch");
    let number = "SELECT snowflake_number_at_commit('branch.invoices', 'number', 'books.invoice')";
    owner.run(number);
    let create = "SELECT snowflake_create_series('books.invoice', 'WRONG-{n:4}')";
    let (call, code) =
        while_it_waits(&server, &format!("BEGIN; ALTER TABLE books.invoice RENAME TO bill; {create}; COMMIT"));
    let named = "SELECT tgconstrrelid::regclass::text FROM pg_trigger WHERE tgrelid = 'branch.invoices'::regclass AND tgconstrrelid <> 0";
    let series: String = owner.one(named);
    let expected = if code.is_none() { "books.bill" } else { "books.invoice" };
    ensure!(series == expected && call.is_ok(), "the trigger names {series} instead of {expected}: {call:?}");
    assert_eq!(code.as_deref(), Some("55P03"));
    // The name of a schema is not locked.
    let (call, code) = while_it_waits(
        &server,
        &format!("BEGIN; ALTER SCHEMA books RENAME TO ledgers; CREATE SCHEMA books; {create}; COMMIT"),
    );
    assert_eq!((call, code), (Err("40001".into()), None));
    assert_eq!(owner.one::<String>(named), "ledgers.invoice");
    // The hint works.
    owner.run(&number.replace("books", "ledgers"));
    Ok(())
}

#[test]
fn a_series_that_is_renamed_during_the_call_does_not_lend_its_name() {
    rename("serial_renamed", None).unwrap();
}

#[test]
fn a_trigger_with_the_last_series_of_a_name_is_caught() {
    assert_caught(rename("serial_by_name", Some("SeriesByName")), "instead of books.bill");
}

/// A role that may insert rows, but lacks a privilege that the number needs.
#[test]
fn a_role_that_may_not_number_rows_is_told_what_to_grant() {
    let (server, mut owner) = Cluster::builder("serial_lacking").start_session();
    owner.run(OBJECTS);
    owner.run(
        "GRANT TRIGGER ON books.invoice TO branch; CREATE ROLE clerk LOGIN; GRANT USAGE ON SCHEMA branch TO clerk;
         GRANT SELECT, INSERT ON branch.invoices TO clerk; GRANT INSERT, UPDATE ON branch.regions TO clerk;
         SELECT snowflake_number_at_commit('branch.invoices', 'number', 'books.invoice'),
             snowflake_number_at_commit('branch.regions', 'number', 'books.invoice')",
    );
    let mut clerk = server.connect_as("clerk");
    for (table, row) in [("invoices", "(id) VALUES (1)"), ("regions", "(region, id) VALUES ('north', 1)")] {
        let insert = format!("INSERT INTO branch.{table} {row}");
        let [code, message, detail, hint] = clerk.error(&insert);
        assert_eq!(
            [code, message],
            ["42501".into(), format!("role \"clerk\" is not allowed to number rows of table \"branch.{table}\"")]
        );
        assert_eq!(
            detail,
            "The number is written with the privileges of this role, which lacks SELECT on the table or UPDATE on column \"number\"."
        );
        let grant = format!("GRANT SELECT, UPDATE (number) ON branch.{table} TO clerk");
        assert_eq!(hint, format!("As the owner of the table, run {grant}."));
        // The hint works.
        owner.run(&grant);
        // The privileges suffice.
        clerk.run(&insert);
    }
    assert_eq!(owner.one::<i64>("SELECT last_number FROM books.invoice"), 2);
}
